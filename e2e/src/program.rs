//! The native program, asked for what the browser is compared with.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{E2eError, Result};
use crate::places::tinyrustlm;

/// Answers to lines of `tinyrustlm eval`.
pub fn eval(model: &Path, arguments: &[&str], lines: &[Value]) -> Result<Vec<Value>> {
    let program = tinyrustlm()?;
    let mut child = Command::new(&program)
        .arg("eval")
        .arg(model)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| E2eError::Start {
            program: program.clone(),
            source,
        })?;
    if let Some(mut input) = child.stdin.take() {
        for line in lines {
            writeln!(input, "{line}").map_err(E2eError::io(&program))?;
        }
    }
    let output = child.wait_with_output().map_err(E2eError::io(&program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let shape = |found: &str| E2eError::Shape {
        what: "an answer of tinyrustlm eval",
        found: found.to_owned(),
    };
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|_| shape(line)))
        .collect::<Result<_>>()?;
    match answers.len() == lines.len() {
        true => Ok(answers),
        false => Err(shape(&text)),
    }
}

/// Writes `from` (a GGUF file or a folder) to `into` as `.slm`, all matrices in the codec
/// `quantize` if it is not empty.
pub fn convert(from: &Path, quantize: &str, into: &Path) -> Result<()> {
    let program = tinyrustlm()?;
    let mut command = Command::new(&program);
    command.arg("convert").arg(from).arg("--output").arg(into);
    if !quantize.is_empty() {
        command.args(["--requantize", "--quantize", quantize]);
    }
    let output = command.output().map_err(|source| E2eError::Start {
        program: program.clone(),
        source,
    })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(E2eError::Silent {
            program,
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
    }
}
