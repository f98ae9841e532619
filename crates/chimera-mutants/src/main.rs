//! The `chimera-mutants` command.
#![forbid(unsafe_code)]

mod find;
mod site;
mod splice;

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let found = find::find(&text).unwrap();
    let mut first = 1;
    let mut placed = Vec::new();
    for (id, site) in found.sites.iter().enumerate() {
        placed.push(splice::Placed { site, form: 0, first, id });
        first += site.mutants.len() as u32;
    }
    println!("{}", splice::Spliced::new(&text, &placed).text);
}
