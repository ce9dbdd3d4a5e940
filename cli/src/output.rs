//! Where results are written.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Refuses an output that is one of the inputs, under whatever name, or a folder.
pub fn keep_input(output: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    let name = output.display();
    // What ends so is the name of a folder, also where there is none.
    let ends = output.as_os_str().as_encoded_bytes().last();
    let is_folder = ends.is_some_and(|end| std::path::is_separator(char::from(*end)));
    if is_folder || output.is_dir() {
        return Err(Failure::Usage(format!("{name} is a folder")));
    }
    for input in inputs {
        // What is not there is no input.
        if same_file::is_same_file(input, output).unwrap_or(false) {
            let what = format!("{name} is the input, which is not written over");
            return Err(Failure::Usage(what));
        }
    }
    Ok(())
}
