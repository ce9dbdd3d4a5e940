//! Who takes part, and in what order.
//!
//! All engines take their turns within each round of each piece of work, so that a slow minute of
//! the machine hits all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use e2e::{Options, Server};
use tempfile::TempDir;

use crate::arguments::Arguments;
use crate::bundle::{Bundle, Entry, ModelResults, SCHEMA, Sample};
use crate::error::{BenchError, Result};
use crate::hold::Hold;
use crate::machine::{Machine, bandwidth};
use crate::page::{Lane, Timing, Wllama};
use crate::program::{Llama, Native, tokenize};
use crate::site;
use crate::task::{ENTRANTS, Entrant, Kind, Work};

/// Passes over memory, before and after the rounds.
const PASSES: usize = 5;

/// A prompt: its text, and its ids by our tokenizer.
struct Prompt {
    text: String,
    ids: Vec<u32>,
}

enum Place {
    Lane(Box<Lane>),
    Native(Native),
    Llama(Llama),
    Wllama(Box<Wllama>),
}

/// One entrant that can be measured.
struct Player {
    entry: usize,
    threads: usize,
    place: Place,
}

/// What all entrants of a model share.
struct Room<'a> {
    arguments: &'a Arguments,
    site: &'a str,
    server: &'a Server,
    model: &'a str,
    prompts: BTreeMap<&'static str, Prompt>,
    /// The texts as files.
    folder: &'a TempDir,
}

pub async fn hold(arguments: &Arguments) -> Result<Bundle> {
    if arguments.report {
        let bundle = Bundle::read(&arguments.out)?;
        bundle.write(&arguments.out)?;
        return Ok(bundle);
    }
    let site = site::serve(&arguments.peers).await?;
    let mut bundle = Bundle {
        schema: SCHEMA.to_owned(),
        machine: Machine::here(),
        models: Vec::new(),
    };
    for (number, model) in arguments.models.iter().enumerate() {
        let starts = if number == 0 { arguments.starts } else { 0 };
        contest(arguments, &site, model, starts, &mut bundle).await?;
    }
    Ok(bundle)
}

async fn contest(
    arguments: &Arguments,
    site: &str,
    model: &str,
    starts: usize,
    bundle: &mut Bundle,
) -> Result<()> {
    let at = bundle.models.len();
    bundle.models.push(ModelResults {
        model: model.to_owned(),
        ..ModelResults::default()
    });
    let folder = tempfile::tempdir().map_err(BenchError::io(Path::new("a folder")))?;
    let server = serve_only(&slm(arguments, model), &folder)?;
    let room = Room {
        arguments,
        site,
        server: &server,
        model,
        prompts: prompts(&slm(arguments, model), &folder)?,
        folder: &folder,
    };
    let mut players = Vec::new();
    for entrant in ENTRANTS
        .iter()
        .filter(|entrant| is_wanted(arguments, entrant))
    {
        let results = &mut bundle.models[at];
        room.enter(entrant, results, &mut players).await;
    }
    let mut hold = Hold::take(&arguments.lock, arguments.turn)?;
    measure_memory(&mut bundle.models[at]);
    for round in 0..arguments.runs {
        for work in arguments.works.iter().copied() {
            for player in &mut players {
                room.turn(player, work, round, &mut bundle.models[at]).await;
                hold.breathe()?;
            }
        }
        eprintln!("{model}: round {} of {}", round + 1, arguments.runs);
        bundle.write(&arguments.out)?;
    }
    measure_memory(&mut bundle.models[at]);
    for player in &mut players {
        let entry = &mut bundle.models[at].entries[player.entry];
        entry.peak_mib = player.place.leave();
    }
    for _ in 0..starts {
        for player in &mut players {
            let results = &mut bundle.models[at].entries[player.entry];
            room.first_token(player, results).await;
            hold.breathe()?;
        }
    }
    bundle.write(&arguments.out)
}

impl Room<'_> {
    /// Brings an entrant to where it can be measured, and measures its first use.
    async fn enter(
        &self,
        entrant: &Entrant,
        results: &mut ModelResults,
        players: &mut Vec<Player>,
    ) {
        let mut entry = Entry {
            engine: entrant.name.to_owned(),
            threads: entrant.threads,
            ..Entry::default()
        };
        let opened = self.open(entrant, &mut entry, results).await;
        let index = results.entries.len();
        match opened {
            Ok(place) => players.push(Player {
                entry: index,
                threads: entrant.threads,
                place,
            }),
            Err(error) => {
                eprintln!("{} with {}: {error}", entrant.name, entrant.threads);
                entry.refused = Some(error.to_string());
            }
        }
        results.entries.push(entry);
    }

    async fn open(
        &self,
        entrant: &Entrant,
        entry: &mut Entry,
        results: &mut ModelResults,
    ) -> Result<Place> {
        let threads = entrant.threads;
        let peers = &self.arguments.peers;
        let mut place = match entrant.kind {
            Kind::Lane { browser, lane } => {
                let mut lane = Lane::new(browser, lane, threads, &self.server.host)?;
                lane.open().await?;
                entry.load_s = Some(lane.load_s);
                entry.version.clone_from(&lane.version);
                results.weight_bytes = lane.fit.map_or(0, |fit| fit.weights);
                Place::Lane(Box::new(lane))
            }
            Kind::Native => {
                let model = slm(self.arguments, self.model);
                Place::Native(Native::new(&program()?, &model, threads))
            }
            Kind::Llama => {
                let model = peers.join("models").join(format!("{}.gguf", self.model));
                let llama = Llama::start(peers, &model, self.folder.path(), threads)?;
                entry.load_s = Some(llama.load_s);
                Place::Llama(llama)
            }
            Kind::Wllama(version) => {
                let mut wllama = Wllama::new(version, threads, self.site, self.model)?;
                wllama.open().await?;
                entry.load_s = Some(wllama.load_s);
                entry.version.clone_from(&wllama.release);
                self.check_ids(&wllama).await?;
                Place::Wllama(Box::new(wllama))
            }
        };
        for work in [Work::Read128, Work::Write128] {
            let timing = self.measure(&mut place, work).await?;
            entry.first_use.push(sample(work, timing));
        }
        Ok(place)
    }

    async fn turn(&self, player: &mut Player, work: Work, round: usize, all: &mut ModelResults) {
        let entry = &mut all.entries[player.entry];
        let mut earlier = entry.samples.iter().filter(|sample| sample.work == work);
        let is_long = earlier.any(|sample| sample.wall_s > self.arguments.long);
        if entry.refused.is_some() || is_long && round >= self.arguments.long_runs {
            return;
        }
        match self.measure(&mut player.place, work).await {
            Ok(timing) => entry.samples.push(sample(work, timing)),
            Err(error) => {
                eprintln!("{} with {}: {error}", entry.engine, player.threads);
                entry.refused = Some(error.to_string());
            }
        }
    }

    async fn measure(&self, place: &mut Place, work: Work) -> Result<Timing> {
        let prompt = &self.prompts[work.prompt()];
        match place {
            Place::Lane(lane) => lane.measure(work, &prompt.ids).await,
            Place::Native(native) => native.measure(work),
            Place::Llama(llama) => llama.measure(work),
            Place::Wllama(wllama) => wllama.measure(work, &prompt.text).await,
        }
    }

    async fn first_token(&self, player: &mut Player, entry: &mut Entry) {
        let prompt = &self.prompts["16"];
        let ended = match &mut player.place {
            Place::Lane(lane) => lane.first_token(&prompt.ids).await,
            Place::Wllama(wllama) => wllama.first_token(&prompt.text).await,
            Place::Native(_) | Place::Llama(_) => return,
        };
        match ended {
            Ok(seconds) => entry.first_token_s.push(seconds),
            Err(error) => entry.refused = Some(error.to_string()),
        }
        player.place.leave();
    }

    /// The peers must read the same ids.
    async fn check_ids(&self, wllama: &Wllama) -> Result<()> {
        for (name, prompt) in &self.prompts {
            let Some(theirs) = wllama.tokenize(&prompt.text).await? else {
                return Ok(());
            };
            if theirs != prompt.ids {
                return Err(BenchError::Tokens {
                    prompt: (*name).to_owned(),
                    ours: prompt.ids.len(),
                    theirs: theirs.len(),
                });
            }
        }
        Ok(())
    }
}

impl Place {
    /// Ends its browser; answers the most memory that it ever had, in MiB.
    fn leave(&mut self) -> Option<f64> {
        let seat = match self {
            Place::Lane(lane) => &mut lane.seat,
            Place::Wllama(wllama) => &mut wllama.seat,
            Place::Native(_) => return None,
            Place::Llama(llama) => return Some(llama.peak_mib()),
        };
        let peak = seat.peak_mib();
        seat.close();
        Some(peak)
    }
}

fn is_wanted(arguments: &Arguments, entrant: &Entrant) -> bool {
    let wanted = &arguments.engines;
    let named = wanted.is_empty() || wanted.iter().any(|part| entrant.name.contains(part));
    named && arguments.threads.contains(&entrant.threads)
}

fn sample(work: Work, timing: Timing) -> Sample {
    Sample {
        work,
        tokens: timing.tokens,
        wall_s: timing.wall_s,
        cpu_s: timing.cpu_s,
        waited: timing.waited,
    }
}

fn measure_memory(results: &mut ModelResults) {
    for (index, values) in results.bandwidth.iter_mut().enumerate() {
        values.extend(bandwidth(index + 1, PASSES));
    }
}

fn slm(arguments: &Arguments, model: &str) -> PathBuf {
    arguments.peers.join("models").join(format!("{model}.slm"))
}

/// It lies beside this program.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe().map_err(BenchError::io(Path::new("this program")))?;
    Ok(here.with_file_name("tinyrustlm"))
}

fn serve_only(model: &Path, folder: &TempDir) -> Result<Server> {
    let models = folder.path().join("models");
    fs::create_dir_all(&models).map_err(BenchError::io(&models))?;
    let link = models.join("model.slm");
    let model = model.canonicalize().map_err(BenchError::io(model))?;
    std::os::unix::fs::symlink(model, &link).map_err(BenchError::io(&link))?;
    Ok(Server::start(Options {
        models: Some(models),
        ..Options::default()
    })?)
}

/// The prompts as texts, as files in the folder, and as ids; a prompt's name is its length.
fn prompts(model: &Path, folder: &TempDir) -> Result<BTreeMap<&'static str, Prompt>> {
    let texts: BTreeMap<String, String> = serde_json::from_str(include_str!("../prompts.json"))
        .map_err(|error| BenchError::answer("prompts.json", error))?;
    let mut prompts = BTreeMap::new();
    for work in Work::ALL {
        let name = work.prompt();
        let text = texts.get(name).cloned().unwrap_or_default();
        let file = folder.path().join(name);
        fs::write(&file, &text).map_err(BenchError::io(&file))?;
        let mut ids = tokenize(&program()?, model, &[&text])?;
        let ids = ids.pop().unwrap_or_default();
        if ids.len().to_string() != name {
            return Err(BenchError::Tokens {
                prompt: name.to_owned(),
                ours: ids.len(),
                theirs: name.parse().unwrap_or(0),
            });
        }
        prompts.insert(name, Prompt { text, ids });
    }
    Ok(prompts)
}
