//! A foreign checkpoint becomes a `.slm` file.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use convert::{
    ConvertError, Converter, DriveError, Need, Options, Outcome, Phase, Progress, Scope, SourceFile,
};
use format::{Codec, Hasher, PieceLayer};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::args::{Convert, Quantize};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// A source on disk: its files in the order that the converter knows them by.
struct Source {
    paths: Vec<PathBuf>,
    files: Vec<File>,
}

pub fn convert(args: &Convert) -> Result<(), Failure> {
    let options = Options {
        quantize: args.quantize.map(|codec| match codec {
            Quantize::Q8_0 => Codec::Q8_0,
            Quantize::Q4_0 => Codec::Q4_0,
            Quantize::Q4_1 => Codec::Q4_1,
        }),
        scope: match args.requantize {
            true => Scope::All,
            false => Scope::Floats,
        },
    };
    let (mut source, converter) = open(&args.input, options)?;
    // The result appears under its name only when it is whole.
    let part = part_path(&args.output)?;
    for output in [&args.output, &part] {
        crate::output::keep_input(output, &source.paths)?;
    }
    let interrupt = Interrupt::watch()?;
    let written = write(&mut source, converter, &part, &interrupt, args.json);
    let ended = written.and_then(|written| {
        let renamed = std::fs::rename(&part, &args.output);
        renamed.map_err(|error| Failure::file(&args.output, &error))?;
        Ok(written)
    });
    let (outcome, layer) = match ended {
        Ok(ended) => ended,
        Err(failure) => {
            // Nothing half-written stays; a failure to remove it is worth a word, not an end.
            match std::fs::remove_file(&part) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    eprintln!("{} is left over: {error}", part.display());
                }
                _ => {}
            }
            return Err(failure);
        }
    };
    report(args, &outcome, &layer);
    Ok(())
}

fn open(input: &Path, options: Options) -> Result<(Source, Converter), Failure> {
    let meta = std::fs::metadata(input).map_err(|error| Failure::file(input, &error))?;
    let mut paths = Vec::new();
    if meta.is_dir() {
        let listing = std::fs::read_dir(input).map_err(|error| Failure::file(input, &error))?;
        for entry in listing {
            let path = entry.map_err(|error| Failure::file(input, &error))?.path();
            let known = path
                .extension()
                .is_some_and(|e| e == "json" || e == "safetensors");
            if known && path.is_file() {
                paths.push(path);
            }
        }
        paths.sort();
    } else {
        paths.push(input.to_owned());
    }
    let mut files = Vec::new();
    let mut names = Vec::new();
    for path in &paths {
        let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
        let len = file
            .metadata()
            .map_err(|error| Failure::file(path, &error))?
            .len();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        names.push(SourceFile {
            name: name.unwrap_or_default(),
            len,
        });
        files.push(file);
    }
    let converter = match (meta.is_dir(), names.pop()) {
        (false, Some(file)) => Converter::gguf(&file.name, file.len, options),
        (_, last) => {
            names.extend(last);
            Converter::folder(&folder_name(input), names, options)
        }
    };
    Ok((Source { paths, files }, converter.map_err(refuse)?))
}

fn write(
    source: &mut Source,
    mut converter: Converter,
    part: &Path,
    interrupt: &Interrupt,
    quiet: bool,
) -> Result<(Outcome, PieceLayer), Failure> {
    let bar = progress_bar(quiet);
    let failed = |error: std::io::Error| Failure::file(part, &error);
    let mut hasher = Hasher::default();
    let mut output: Option<BufWriter<File>> = None;
    let read = |need: Need, into: &mut [u8]| {
        interrupt.check()?;
        let index = need.source as usize;
        let file = &mut source.files[index];
        let read = file
            .seek(SeekFrom::Start(need.at))
            .and_then(|_| file.read_exact(into));
        read.map_err(|error| Failure::file(&source.paths[index], &error))
    };
    let write = |bytes: &[u8]| {
        let out = match &mut output {
            Some(out) => out,
            // Created late: a refusal of the header leaves no file at all.
            None => output.insert(BufWriter::new(File::create(part).map_err(failed)?)),
        };
        hasher.update(bytes);
        out.write_all(bytes).map_err(failed)
    };
    let ended = convert::drive(&mut converter, read, write, |progress| show(&bar, progress));
    bar.finish_and_clear();
    let outcome = ended.map_err(|error| match error {
        DriveError::Convert(error) => Failure::refused(&error, error.remedy()),
        DriveError::Read(failure) | DriveError::Write(failure) => failure,
    })?;
    if let Some(mut out) = output {
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .map_err(failed)?;
    }
    Ok((outcome, hasher.finish()))
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.total);
    bar.set_position(progress.done);
    bar.set_message(match progress.phase {
        Phase::Reading => "reading",
        Phase::Checking => "checking",
        Phase::Converting => "converting",
    });
}

fn report(args: &Convert, outcome: &Outcome, layer: &PieceLayer) {
    if args.json {
        let quantized = outcome.quantized.map(|quantized| {
            json!({
                "matrices": quantized.matrices,
                "kept": quantized.kept,
                "error_rms": quantized.error_rms,
                "weight_rms": quantized.weight_rms,
            })
        });
        println!(
            "{}",
            json!({
                "output": args.output,
                "length": outcome.file_len,
                "root": layer.id.root,
                "quantized": quantized,
            })
        );
        return;
    }
    println!(
        "{}: {} bytes, root {}",
        args.output.display(),
        outcome.file_len,
        layer.id.root
    );
    if let Some(quantized) = outcome.quantized {
        println!(
            "{} matrices quantized, {} kept; error {:.3e} RMS on weights of {:.3e} RMS",
            quantized.matrices, quantized.kept, quantized.error_rms, quantized.weight_rms
        );
        if quantized.matrices == 0 && !args.requantize {
            println!(
                "Matrices that are quantized already stay as they are; --requantize rounds them \
                 once more."
            );
        }
    }
}

fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn progress_bar(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    let template = "{msg:<11} {bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn part_path(output: &Path) -> Result<PathBuf, Failure> {
    let Some(name) = output.file_name() else {
        return Err(Failure::Usage(format!(
            "{} is not a file name",
            output.display()
        )));
    };
    let mut part = name.to_owned();
    part.push(".part");
    Ok(output.with_file_name(part))
}

fn refuse(error: ConvertError) -> Failure {
    Failure::refused(&error, error.remedy())
}
