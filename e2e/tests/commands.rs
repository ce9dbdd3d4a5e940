//! Every command to a worker in a browser, in every state: an answer or a refusal comes, whatever
//! is asked, and the worker lives on. What each comes to is the table of
//! `worker/tests/every_command.rs`.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use e2e::{Browser, Engine, Options, Profile, Server, WorkerLink, convert, golden};
use format::ModelId;
use protocol::{
    Catalogue, CatalogueEntry, Command, Event, ImportId, ImportSource, Measure, Mode, RequestId,
    Sampling, Subject, SwarmCommand, SwarmEvent, decode, encode,
};

const SOON: Duration = Duration::from_secs(60);

struct Worker<'a> {
    link: WorkerLink<'a>,
    last: u32,
}

impl Worker<'_> {
    async fn send(&self, command: &Command) {
        self.link.send(&encode(command).unwrap()).await.unwrap();
    }

    /// Everything that comes until the wanted event, which is the last.
    async fn until(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Event {
        loop {
            let bytes = match self.link.next(SOON).await {
                Ok(bytes) => bytes,
                Err(error) => panic!("{what}: {error}"),
            };
            let event: Event = decode(&bytes).unwrap();
            if wanted(&event) {
                return event;
            }
        }
    }

    async fn answer(&self, command: &Command) -> Event {
        self.send(command).await;
        let what = format!("{command:?}");
        self.until(&what, |event| answers(command, event)).await
    }

    /// A page's numbers rise: a stop of an earlier one is one that came too late, and silent.
    fn number(&mut self) -> RequestId {
        self.last += 100;
        RequestId(self.last)
    }

    /// Every command once, with numbers that were not used before.
    async fn ask_everything(&mut self, entry: &CatalogueEntry, state: &str) {
        self.last += 100;
        for command in commands(entry, self.last) {
            println!("{state}: {command:?}");
            self.answer(&command).await;
        }
    }
}

/// None of them changes what is stored or loaded: that would be another state.
fn commands(entry: &CatalogueEntry, number: u32) -> Vec<Command> {
    let model = entry_id(entry);
    let nowhere = ModelId { length: 1, ..model };
    let (request, import) = (RequestId(number), ImportId(number));
    vec![
        Command::Diagnostics,
        Command::ListModels,
        Command::Catalogue { newest: 0 },
        Command::CancelImport {
            import,
            discard: false,
        },
        Command::Import {
            import,
            source: ImportSource::File {
                name: "none.slm".into(),
                length: 7,
            },
        },
        Command::Import {
            import: ImportId(number + 1),
            source: ImportSource::Address {
                url: "/nothing/here.slm".into(),
            },
        },
        Command::DeleteModel { model: nowhere },
        Command::Load {
            model: nowhere,
            context: 0,
        },
        Command::Export { model: nowhere },
        Command::Check { model: nowhere },
        Command::Chat {
            request,
            messages: Vec::new(),
            sampling: Sampling::GREEDY,
            kept_as: None,
        },
        Command::Measure {
            request: RequestId(number + 1),
            measure: measure(2),
        },
        Command::Time {
            request: RequestId(number + 2),
            measure: measure(2),
        },
        Command::Stop {
            request: RequestId(number + 50),
        },
        Command::TakeOver,
        Command::ForgetKept {
            conversation: Some(u64::from(number)),
        },
        Command::Swarm(SwarmCommand::Share {
            model: nowhere,
            trackers: Vec::new(),
            limit: None,
            seed: 7,
        }),
        Command::Swarm(SwarmCommand::Unshare { model: nowhere }),
    ]
}

fn measure(max_new: u32) -> Measure {
    Measure {
        prompt_ids: (3..9).collect(),
        max_new,
        prefill_tile: 0,
        mode: Mode::Int8V1,
        reuses: false,
    }
}

fn entry_id(entry: &CatalogueEntry) -> ModelId {
    ModelId {
        root: entry.root,
        length: entry.length,
    }
}

/// The event ends what the command began, one way or the other.
fn answers(command: &Command, event: &Event) -> bool {
    let subject = command.subject();
    match event {
        Event::Failed { subject: of, error } => {
            assert!(
                error.what.len() > 10 && error.remedy.len() > 10,
                "{error:?}"
            );
            *of == subject
        }
        Event::Diagnostics(_) => *command == Command::Diagnostics,
        Event::Models(_) => *command == Command::ListModels,
        Event::Catalogue(_) => subject == Subject::Catalogue,
        Event::Imported { import, .. } | Event::ImportCancelled { import } => {
            subject == Subject::Import(*import)
        }
        Event::Done { request, .. } | Event::Measured { request, .. } => {
            subject == Subject::Request(*request)
        }
        Event::Loaded { model, .. } => subject == Subject::Load(model.id),
        Event::Kept { .. } => matches!(command, Command::ForgetKept { .. }),
        Event::Swarm(SwarmEvent::Ended { model: of }) => matches!(
            command,
            Command::Swarm(SwarmCommand::Unshare { model }) if model == of
        ),
        _ => false,
    }
}

/// The app's server with one small model, whose entry is given too.
async fn serve(browser: &Browser, models: &Path) -> (Server, CatalogueEntry) {
    let source = golden().unwrap().join("tiny/llama_gqa_tied");
    convert(&source, "q8_0", &models.join("tiny.slm")).unwrap();
    let server = Server::start(Options {
        models: Some(models.to_owned()),
        ..Options::default()
    });
    let server = server.unwrap();
    // A page of the origin without a worker of its own.
    let blank = server.url("icons/mark.svg");
    browser.client.goto(&blank).await.unwrap();
    let fetch = "return await (await fetch('/models/catalogue.json')).text()";
    let list = browser.js(fetch, &[]).await.unwrap();
    let mut list: Catalogue = serde_json::from_str(list.as_str().unwrap()).unwrap();
    (server, list.models.remove(0))
}

async fn walk(engine: Engine) {
    let models = tempfile::tempdir().unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    let (_server, entry) = serve(&browser, models.path()).await;
    let entry = &entry;
    let model = entry_id(entry);
    let context = 0;

    let link = WorkerLink::start(&browser, "").await.unwrap();
    let mut worker = Worker { link, last: 0 };
    // It has not even found out who owns.
    worker.ask_everything(entry, "starting").await;
    worker.ask_everything(entry, "nothing is stored").await;
    let (import, source) = (ImportId(1), ImportSource::Catalogue(entry.clone()));
    worker.answer(&Command::Import { import, source }).await;
    worker.ask_everything(entry, "a model is stored").await;
    worker.send(&Command::Load { model, context }).await;
    worker.ask_everything(entry, "it is being loaded").await;
    let loaded = worker.answer(&Command::Load { model, context }).await;
    assert!(matches!(loaded, Event::Loaded { .. }), "{loaded:?}");
    worker.ask_everything(entry, "it is loaded").await;
    let (request, measure) = (worker.number(), measure(60));
    worker.send(&Command::Time { request, measure }).await;
    worker.ask_everything(entry, "a request is running").await;
    // After all that it computes as before, and bytes that are no command are told too.
    let (request, measure) = (worker.number(), self::measure(5));
    let last = worker.answer(&Command::Measure { request, measure }).await;
    assert!(matches!(last, Event::Measured { .. }), "{last:?}");
    worker.link.send(&[0xff; 40]).await.unwrap();
    let is_told = |event: &Event| {
        let subject = Subject::Start;
        matches!(event, Event::Failed { subject: of, .. } if *of == subject)
    };
    worker.until("bytes", is_told).await;
}

#[tokio::test]
async fn every_command_is_answered_in_chromium() {
    walk(Engine::Chromium).await;
}

#[tokio::test]
async fn every_command_is_answered_in_firefox() {
    walk(Engine::Firefox).await;
}
