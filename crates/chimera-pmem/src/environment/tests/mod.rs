mod files;
mod real;
mod stepped;
