//! Native programs: this project's own, and llama.cpp behind a line of text.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use protocol::{BenchBundle, BenchOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{BenchError, Result};
use crate::machine::{Use, peak_mib};
use crate::page::Timing;
use crate::task::Work;

/// `tinyrustlm bench`, one process for each piece of work.
pub struct Native {
    program: PathBuf,
    model: PathBuf,
    threads: usize,
}

/// llama.cpp with a model loaded.
pub struct Llama {
    path: PathBuf,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    prompts: PathBuf,
    threads: usize,
    pub load_s: f64,
}

#[derive(Deserialize)]
struct Answer {
    tokens: u32,
    wall_s: f64,
    cpu_s: f64,
}

impl Native {
    pub fn new(program: &Path, model: &Path, threads: usize) -> Native {
        Native {
            program: program.to_owned(),
            model: model.to_owned(),
            threads,
        }
    }

    /// The second of two runs, so that the model's pages have been touched once.
    pub fn measure(&self, work: Work) -> Result<Timing> {
        let output = Command::new(&self.program)
            .arg("bench")
            .arg(&self.model)
            .args(["--json", "--runs", "2", "--prompt", work.prompt()])
            .args(["--decode", &work.new_tokens().max(2).to_string()])
            .args(["--context", "1024", "--threads", &self.threads.to_string()])
            .output()
            .map_err(BenchError::io(&self.program))?;
        let said = || BenchError::Program {
            path: self.program.clone(),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let bundle: BenchBundle = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
        let BenchOutcome::Complete(figures) = bundle.outcome else {
            return Err(said());
        };
        let runs = match work {
            Work::Read128 | Work::Read512 => figures.prefill,
            Work::Write128 => figures.decode,
        };
        let run = runs.last().ok_or_else(said)?;
        Ok(Timing {
            tokens: run.tokens,
            wall_s: run.ms / 1e3,
            cpu_s: run.cpu_ms.unwrap_or(f64::NAN) / 1e3,
            waited: None,
        })
    }
}

impl Llama {
    pub fn start(peers: &Path, model: &Path, prompts: &Path, threads: usize) -> Result<Llama> {
        let path = peers.join("native");
        let mut child = Command::new(&path)
            .arg(model)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(BenchError::io(&path))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let Some((input, output)) = pipes else {
            let said = "nothing: it has no pipes".to_owned();
            return Err(BenchError::Program { path, said });
        };
        let mut llama = Llama {
            path,
            child,
            input,
            output: BufReader::new(output),
            prompts: prompts.to_owned(),
            threads,
            load_s: 0.0,
        };
        llama.load_s = llama.answer()?.wall_s;
        Ok(llama)
    }

    pub fn measure(&mut self, work: Work) -> Result<Timing> {
        let prompt = self.prompts.join(work.prompt());
        let line = match work {
            Work::Read128 | Work::Read512 => format!("read {}", prompt.display()),
            Work::Write128 => format!("write {} {}", prompt.display(), work.new_tokens()),
        };
        let process = BTreeSet::from([self.child.id()]);
        let before = Use::of(&process);
        writeln!(self.input, "{line}").map_err(BenchError::io(&self.path))?;
        let answer = self.answer()?;
        let used = Use::of(&process).since(&before, self.threads);
        if answer.tokens != work.counted() {
            return Err(BenchError::Tokens {
                prompt: work.prompt().to_owned(),
                ours: work.counted() as usize,
                theirs: answer.tokens as usize,
            });
        }
        Ok(Timing {
            tokens: answer.tokens,
            wall_s: answer.wall_s,
            cpu_s: answer.cpu_s,
            waited: Some(used.waited),
        })
    }

    pub fn peak_mib(&self) -> f64 {
        peak_mib(&BTreeSet::from([self.child.id()]))
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut said = String::new();
        self.output
            .read_line(&mut said)
            .map_err(BenchError::io(&self.path))?;
        serde_json::from_str(&said).map_err(|_| BenchError::Program {
            path: self.path.clone(),
            said,
        })
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        // Both fail only if it has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Token ids of some texts, by this project's tokenizer.
pub fn tokenize(program: &Path, model: &Path, texts: &[&str]) -> Result<Vec<Vec<u32>>> {
    let mut child = Command::new(program)
        .arg("tokenize")
        .arg(model)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(BenchError::io(program))?;
    if let Some(mut input) = child.stdin.take() {
        for text in texts {
            let line = json!({ "id": 0, "text": text, "special": false });
            writeln!(input, "{line}").map_err(BenchError::io(program))?;
        }
    }
    let output = child.wait_with_output().map_err(BenchError::io(program))?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines()
        .map(|line| {
            let ids = serde_json::from_str(line).map(|mut value: Value| value["ids"].take());
            let ids = ids.and_then(serde_json::from_value);
            ids.map_err(|_| BenchError::Program {
                path: program.to_owned(),
                said: line.to_owned(),
            })
        })
        .collect()
}
