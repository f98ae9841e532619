mod directory;
mod files;
mod real;
mod stepped;
