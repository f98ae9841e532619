//! [`Shape`]: what kind of store is tested, written down.

use serde::{Deserialize, Serialize};

use super::{Engine, EngineShape, Fixture, Primitive, Subject};

/// What kind of store is tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    Engine(EngineShape),
    Fixture(Fixture),
    Primitive(Primitive),
}

/// Something to be done with a subject of any type.
pub(crate) trait SubjectVisitor {
    type Output;
    fn visit<S: Subject>(self, subject: &S) -> Self::Output;
}

impl Shape {
    /// Calls `visitor` with a subject of this shape.
    pub(crate) fn with_subject<V: SubjectVisitor>(&self, visitor: V) -> V::Output {
        match self {
            Self::Engine(shape) => visitor.visit(&Engine::new(shape)),
            Self::Fixture(fixture) => visitor.visit(fixture),
            Self::Primitive(primitive) => visitor.visit(primitive),
        }
    }
}
