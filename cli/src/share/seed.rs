//! `tinyrustlm seed`: gives one model to whoever has the link.

use std::io::BufRead;

use p2p::{
    Fault, IceServer, Input, Invite, LinkId, PieceSet, Qr, Sharing, Status, UploadLimits,
    offer_code, offer_tag, read_code,
};
use tokio::sync::mpsc;
use webrtc::peer_connection::RTCIceServer;

use super::connection::{Connection, Reach};
use super::happening::{Happening, Watcher};
use super::node::{Node, Shelf};
use super::shelf::Finished;
use crate::args::{self, Seed};
use crate::failure::Failure;

/// How many offers a seeder keeps open at a tracker: who waits there is found at once.
const SEEK: usize = 1;

pub fn seed(args: &Seed) -> Result<(), Failure> {
    if args.tracker.is_empty() && !args.manual {
        return Err(Failure::Usage(
            "name a --tracker, or exchange codes by hand with --manual".into(),
        ));
    }
    let header = crate::model::read_header(&args.model)?;
    let layer = crate::model::hash_file(&args.model)?;
    let id = layer.id;
    let invite = Invite {
        id,
        name: header.manifest.name.clone(),
        sources: args.source.clone(),
        trackers: args.tracker.clone(),
        offer: None,
    };
    let link = link(args.app.as_deref(), &invite)?;
    println!("Sharing {} ({} bytes)", invite.name, id.length);
    println!(
        "Licence: {}",
        header.manifest.licence.as_deref().unwrap_or("not named")
    );
    println!("Root: {}", id.root);
    println!("Peers learn the address of this machine, and that it has this model.");
    let shelf = Finished::open(&args.model, layer.id, args.lie)?;
    super::on_runtime(async move {
        let mut node = Node::new(id, Shelf::Finished(shelf), args.reach.reach()?)?;
        node.put(Input::Layer(layer));
        for piece in PieceSet::full(id.pieces()).iter() {
            node.put(Input::Stored { piece });
        }
        let limits = UploadLimits {
            total: args.upload,
            each: None,
        };
        node.put(Input::Limit(limits));
        node.put(Input::Share(Sharing::On));
        for tracker in &args.tracker {
            node.add_tracker(tracker, SEEK)?;
        }
        if !args.tracker.is_empty() {
            println!("Link: {link}");
        }
        if args.manual {
            let first = node.new_link();
            let by_hand = ByHand {
                args,
                invite,
                reach: node.reach().clone(),
                tell: node.teller(),
            };
            by_hand.begin(first).await?;
        }
        super::end_on_interrupt(node.teller());
        node.run(&mut Words).await?;
        let (status, _) = node.close().await;
        println!("Stopped after {} bytes", status.up);
        Ok(())
    })
}

/// The address of the app with the invite as its fragment, or the fragment alone.
pub fn link(app: Option<&str>, invite: &Invite) -> Result<String, Failure> {
    let text = invite.to_text().map_err(super::refuse)?;
    Ok(format!("{}#{text}", app.unwrap_or_default()))
}

/// A handshake without a server: a link with an offer goes out, an answer is typed in.
struct ByHand<'a> {
    args: &'a Seed,
    invite: Invite,
    reach: Reach,
    tell: mpsc::Sender<Happening>,
}

impl ByHand<'_> {
    async fn begin(mut self, link: LinkId) -> Result<(), Failure> {
        let id = self.invite.id;
        let (pending, offer) = Connection::offer(link, &self.reach, self.tell.clone()).await?;
        let code = offer_code(id, &offer).map_err(super::refuse)?;
        let tag = offer_tag(&code).map_err(super::refuse)?;
        self.invite.offer = Some(code);
        show(
            "Link, for one person",
            &self::link(self.args.app.as_deref(), &self.invite)?,
        );
        println!("Paste the answer that the other side shows, and press Enter:");
        let tell = self.tell;
        // Reading the terminal blocks a thread of its own, which ends with the program.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                match read_code(id, &line) {
                    Ok(code) if code.answers == Some(tag) => {
                        let answer = code.description;
                        let typed = Happening::AnsweredByHand {
                            link,
                            pending,
                            answer,
                        };
                        return tell.blocking_send(typed).is_ok();
                    }
                    Ok(_) => println!("That is no answer to this link."),
                    Err(error) => println!("That cannot be used: {error}."),
                }
            }
            false
        });
        Ok(())
    }
}

/// A text to be carried over, also as a picture if a person looks.
pub fn show(what: &str, text: &str) {
    use std::io::IsTerminal;
    println!("{what}: {text}");
    if std::io::stdout().is_terminal()
        && let Ok(qr) = Qr::new(text)
    {
        println!("{}", qr.to_terminal());
    }
}

struct Words;

impl Watcher for Words {
    fn left(&mut self, link: LinkId, fault: &Fault) {
        if fault.is_a_lie() {
            eprintln!("left peer {}: {fault}", link.0);
        }
    }

    fn said(&mut self, words: String) {
        eprintln!("{words}");
    }

    fn progress(&mut self, _: u64, _: &Status) {}
}

impl args::Reach {
    pub fn reach(&self) -> Result<Reach, Failure> {
        let servers = self.ice_server.iter().map(|text| ice_server(text));
        let servers: Result<_, Failure> = servers.collect();
        Ok(Reach {
            listen: self.listen,
            servers: servers?,
        })
    }
}

fn ice_server(text: &str) -> Result<RTCIceServer, Failure> {
    let server = IceServer::parse(text).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(RTCIceServer {
        urls: vec![server.url],
        username: server.user,
        credential: server.password,
    })
}
