//! `tinyrustlm fetch`: gets the model of a link, from peers and servers at once.

use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use p2p::{
    Fault, Input, Invite, LinkId, Sharing, Status, UploadLimits, Want, answer_code, offer_tag,
    read_code,
};

use super::connection::{Connection, key_of};
use super::happening::Watcher;
use super::node::{Node, Shelf};
use super::preflight;
use super::seed::show;
use super::shelf::Arriving;
use crate::args::Fetch;
use crate::failure::Failure;

/// Offers that are kept open at each tracker while the model is not here.
const SEEK: usize = 2;

pub fn fetch(args: &Fetch) -> Result<(), Failure> {
    // A link is whatever comes before its fragment, and the fragment.
    let fragment = args.link.rsplit('#').next().unwrap_or(&args.link);
    let invite = Invite::parse(fragment).map_err(super::refuse)?;
    if invite.sources.is_empty() && invite.trackers.is_empty() && invite.offer.is_none() {
        let remedy = "Ask for a link with a server, a tracker or an offer in it.";
        return Err(Failure::refused("the link names nobody to ask", remedy));
    }
    let id = invite.id;
    let to = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(file_name(&invite.name)));
    let arriving = Arriving::new(id, &to)?;
    let layer = arriving.known_layer();
    let start = Instant::now();
    super::on_runtime(async {
        let mut node = Node::new(id, Shelf::Arriving(Box::new(arriving)), args.reach.reach()?)?;
        if let Some(layer) = layer {
            node.put(Input::Layer(layer));
        }
        node.put(Input::Limit(UploadLimits {
            total: args.upload,
            each: None,
        }));
        if args.share {
            node.put(Input::Share(Sharing::On));
        }
        for tracker in &invite.trackers {
            node.add_tracker(tracker, SEEK)?;
        }
        for url in &invite.sources {
            node.add_server(url);
        }
        if let Some(offer) = &invite.offer {
            answer_by_hand(&mut node, &invite, offer).await?;
        }
        super::end_on_interrupt(node.teller());
        let mut bar = Bar::new(id.length);
        let outcome = take(&mut node, &to, &mut bar).await;
        let (status, shelf) = node.close().await;
        bar.0.finish_and_clear();
        let Shelf::Arriving(arriving) = shelf else {
            return Ok(());
        };
        match outcome {
            Ok(Taken::Whole) => arriving.finish(0)?,
            Ok(Taken::Interrupted) => {
                arriving.suspend(0)?;
                let what = "stopped before it was complete; the same command goes on from here";
                return Err(Failure::Interrupted(what.into()));
            }
            Ok(Taken::Unwanted(why)) => {
                arriving.discard(0)?;
                return Err(why);
            }
            Err(why) => {
                arriving.suspend(0)?;
                return Err(why);
            }
        }
        tell(&to, &status, start, id.length);
        Ok(())
    })
}

enum Taken {
    Whole,
    /// By the person.
    Interrupted,
    /// Its beginning says that the rest is not wanted.
    Unwanted(Failure),
}

/// The header first, which says whether the rest is wanted.
async fn take(node: &mut Node, to: &Path, bar: &mut Bar) -> Result<Taken, Failure> {
    let mut pieces = 1;
    let header = loop {
        node.want(Want::First(pieces));
        if !node.run(bar).await? {
            return Ok(Taken::Interrupted);
        }
        match preflight::header(node, pieces) {
            Ok(preflight::Beginning::Whole(header)) => break header,
            Ok(preflight::Beginning::Needs(more)) => pieces = more,
            Err(why) => return Ok(Taken::Unwanted(why)),
        }
    };
    for line in preflight::facts(&header) {
        bar.0.suspend(|| println!("{line}"));
    }
    if let Err(why) = preflight::room(to, node.left()) {
        return Ok(Taken::Unwanted(why));
    }
    node.want(Want::All);
    match node.run(bar).await? {
        true => Ok(Taken::Whole),
        false => Ok(Taken::Interrupted),
    }
}

/// The second half of a handshake without a server.
async fn answer_by_hand(node: &mut Node, invite: &Invite, offer: &str) -> Result<(), Failure> {
    let code = read_code(invite.id, offer).map_err(super::refuse)?;
    let tag = offer_tag(offer).map_err(super::refuse)?;
    let (link, key) = (node.new_link(), key_of(&code.description));
    let (reach, teller) = (node.reach().clone(), node.teller());
    let (connection, answer) =
        Connection::answer(link, &reach, (key, &code.description), teller).await?;
    // The other person needs longer than a machine to carry the answer back.
    node.join_slowly(link, connection);
    let answer = answer_code(invite.id, tag, &answer).map_err(super::refuse)?;
    show("Answer, to be given back", &answer);
    Ok(())
}

fn tell(to: &Path, status: &Status, start: Instant, length: u64) {
    let servers: u64 = status
        .peers
        .iter()
        .filter(|it| it.is_server)
        .map(|it| it.down)
        .sum();
    println!(
        "{}: {length} bytes in {:.1} s ({} from peers, {servers} from servers, {} given)",
        to.display(),
        start.elapsed().as_secs_f64(),
        status.down - servers,
        status.up,
    );
}

/// A file name from a stranger's name of a model.
fn file_name(name: &str) -> String {
    let plain = |char: char| match char.is_ascii_alphanumeric() || "-_.".contains(char) {
        true => char,
        false => '-',
    };
    let name: String = name.chars().map(plain).take(100).collect();
    let name = name.trim_matches(|char| char == '.' || char == '-');
    match name.is_empty() {
        true => "model.slm".into(),
        false => format!("{name}.slm"),
    }
}

struct Bar(ProgressBar);

impl Bar {
    fn new(length: u64) -> Bar {
        let bar = ProgressBar::new(length);
        let style = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {elapsed} {msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Bar(bar)
    }
}

impl Watcher for Bar {
    fn left(&mut self, link: LinkId, fault: &Fault) {
        if fault.is_a_lie() {
            self.0
                .suspend(|| eprintln!("left peer {}: {fault}", link.0));
        }
    }

    fn said(&mut self, words: String) {
        self.0.suspend(|| eprintln!("{words}"));
    }

    fn progress(&mut self, bytes: u64, status: &Status) {
        self.0.set_position(bytes);
        self.0.set_message(format!("from {}", status.peers.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_strangers_name_is_no_path() {
        let check = |name: &str, expected: &str| assert_eq!(file_name(name), expected);
        check("SmolLM2 135M", "SmolLM2-135M.slm");
        check("../../etc/passwd", "etc-passwd.slm");
        check("..", "model.slm");
        check("é", "model.slm");
        check("C:\\x", "C--x.slm");
    }
}
