//! One tab: it asks the owner, or is the owner.
//!
//! A tab seeks (no owner is known), follows, owns, or is outdated. Whoever holds the origin's lock
//! owns; everything else follows from what is heard. The epoch on every message fences off an
//! owner that slept through its own end: what it says is not heard, and when it hears of a higher
//! epoch, or that its lock was taken, it lets go of its files before it does anything else.

mod ended;
mod heard;
mod slept;

use std::collections::VecDeque;

use protocol::{
    Ask, Call, ClientId, Command, Edition, Epoch, Event, Stage, TabRole, Tell, ToClient, ToOwner,
};

use super::hub::{Hub, HubOutput};
use super::pending::Pending;
use crate::words;

/// Commands of the page that are held until there is an owner.
pub const HELD_MAX: usize = 32;
/// Seconds without a word after which an owner is asked whether it is there, and after which it is
/// called silent. A step of the engine on a slow device is shorter.
const ASK_AFTER: u32 = 5;
const SILENT_AFTER: u32 = 12;
/// Bits of an epoch that tell tabs apart; those above them are a time in milliseconds.
const OWN_BITS: u32 = 16;

#[derive(Debug)]
pub enum TabInput {
    /// A command of this tab's page; `attached` is the number of the file that came with it.
    Page {
        command: Command,
        attached: Option<u32>,
    },
    /// Heard by every tab.
    Call(Call),
    /// Of a client, on the channel of an epoch.
    Asked {
        asked: ToOwner,
        attached: Option<u32>,
    },
    /// Of an owner, on this client's channel.
    Told(ToClient),
    /// The origin's lock is held; `now_ms` since 1970.
    Granted { now_ms: u64 },
    /// The origin's lock was taken away.
    Deposed,
    /// A client's worker has ended.
    Gone(ClientId),
    /// Of this worker's own session.
    Session(Event),
    /// A second has passed; since 1970, by a clock that goes on while the device sleeps.
    Tick { now_ms: u64 },
    /// Work is about to go on.
    Work { now_ms: u64 },
    /// What [`TabOutput::Check`] found: the lock is this worker's, and engine and files are well.
    Checked { is_well: bool },
}

#[derive(Debug, PartialEq)]
pub enum TabOutput {
    Page(Event),
    Call(Call),
    /// Hear on the channel of this epoch, and on no other of that kind.
    Listen(Epoch),
    /// Goes to the channel of its epoch.
    Ask {
        asked: ToOwner,
        attached: Option<u32>,
    },
    Tell {
        client: ClientId,
        told: ToClient,
    },
    /// Say when this client's worker ends.
    Watch(ClientId),
    /// Open the files and start the engine: this tab owns.
    Work,
    Session {
        command: Command,
        attached: Option<u32>,
    },
    /// The file with this number is of no more use.
    LetGo(u32),
    /// Close the files, end the engine, give the lock back.
    Stop,
    /// Ask for the lock, and wait.
    Seek,
    /// Take the lock from whoever has it.
    Steal,
    /// Look whether the lock is still held and whether engine and files are well, and do no work
    /// before that is known.
    Check,
}

enum Stand {
    Seeking,
    Following { epoch: Epoch, welcomed: bool },
    Owning { epoch: Epoch, hub: Box<Hub> },
    Outdated,
}

pub struct Tab {
    me: ClientId,
    edition: Edition,
    /// The highest that was heard of.
    newest: Epoch,
    stand: Stand,
    pending: Pending,
    held: VecDeque<(Command, Option<u32>)>,
    /// Owner: a later edition waits.
    leaving: bool,
    /// Seconds since the owner was heard.
    quiet: u32,
    told: Option<(TabRole, Epoch)>,
    /// When this was last heard of time; a gap means that the device slept.
    seen_ms: Option<u64>,
    /// Owner: what came since a sleep, until it is known that nothing was lost by it.
    doubt: Option<VecDeque<TabInput>>,
    out: VecDeque<TabOutput>,
}

impl Tab {
    /// A tab that looks for an owner. Its worker holds its own lock already, or the owner would
    /// believe it dead.
    pub fn new(me: ClientId, edition: Edition) -> Tab {
        Tab {
            me,
            edition,
            newest: Epoch(0),
            stand: Stand::Seeking,
            pending: Pending::default(),
            held: VecDeque::new(),
            leaving: false,
            quiet: 0,
            told: None,
            seen_ms: None,
            doubt: None,
            out: [TabOutput::Seek, TabOutput::Call(Call::Who { client: me })].into(),
        }
    }

    pub fn poll(&mut self) -> Option<TabOutput> {
        self.out.pop_front()
    }

    pub fn owns(&self) -> bool {
        matches!(self.stand, Stand::Owning { .. })
    }

    /// Nothing may be done before a check is answered.
    pub fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    pub fn handle(&mut self, input: TabInput) {
        if let TabInput::Tick { now_ms } | TabInput::Work { now_ms } = input {
            self.notice_sleep(now_ms);
        }
        // What others say of themselves and of the lock is heard at once.
        let can_wait = matches!(
            input,
            TabInput::Page { .. }
                | TabInput::Asked { .. }
                | TabInput::Gone(_)
                | TabInput::Session(_)
        );
        match &mut self.doubt {
            Some(waiting) if can_wait => waiting.push_back(input),
            _ => self.take(input),
        }
        if !self.owns() {
            // Another one works, or this one begins anew: there is nothing left to doubt.
            self.end_doubt();
        }
        self.drain_hub();
        self.leave_if_idle();
    }

    fn take(&mut self, input: TabInput) {
        match input {
            TabInput::Page { command, attached } => self.on_page(command, attached),
            TabInput::Call(call) => self.on_call(call),
            TabInput::Asked { asked, attached } => self.on_asked(asked, attached),
            TabInput::Told(told) => self.on_told(told),
            TabInput::Granted { now_ms } => self.on_granted(now_ms),
            TabInput::Deposed => self.on_deposed(),
            TabInput::Gone(client) => {
                if let Stand::Owning { hub, .. } = &mut self.stand {
                    hub.leave(client);
                }
            }
            TabInput::Session(event) => {
                if let Stand::Owning { hub, .. } = &mut self.stand {
                    hub.event(event);
                }
            }
            TabInput::Tick { .. } => self.on_tick(),
            TabInput::Work { .. } => {}
            TabInput::Checked { is_well: true } => self.end_doubt(),
            // Files and engine are begun anew, by this worker or by another one.
            TabInput::Checked { is_well: false } if self.doubt.is_some() => self.on_deposed(),
            TabInput::Checked { .. } => {}
        }
    }

    fn on_page(&mut self, command: Command, attached: Option<u32>) {
        if command == Command::TakeOver {
            if matches!(self.told, Some((TabRole::Silent, _))) {
                return self.out.push_back(TabOutput::Steal);
            }
            let what = "the tab that does the work answers";
            return self.refuse(&command, what, "go on as before");
        }
        let me = self.me;
        match &mut self.stand {
            Stand::Owning { hub, .. } => {
                self.pending.asked(&command, attached);
                hub.command(me, command, attached);
            }
            Stand::Following {
                epoch,
                welcomed: true,
            } => {
                self.pending.asked(&command, attached);
                let (epoch, client, ask) = (*epoch, me, Ask::Command(command));
                let asked = ToOwner { epoch, client, ask };
                self.out.push_back(TabOutput::Ask { asked, attached });
            }
            Stand::Seeking | Stand::Following { .. } if self.held.len() < HELD_MAX => {
                self.held.push_back((command, attached));
            }
            Stand::Seeking | Stand::Following { .. } => {
                let what = "too many commands came before the worker was ready";
                self.refuse(&command, what, "wait until the worker is ready");
                self.out.extend(attached.map(TabOutput::LetGo));
            }
            Stand::Outdated => self.refuse_outdated(&command, attached),
        }
    }

    fn refuse(&mut self, command: &Command, what: &str, remedy: &str) {
        let subject = command.subject();
        let error = words::illegal(Stage::Start, what, remedy);
        self.page(Event::Failed { subject, error });
    }

    fn on_granted(&mut self, now_ms: u64) {
        if matches!(self.stand, Stand::Outdated) {
            return self.out.push_back(TabOutput::Stop);
        }
        if self.owns() {
            return;
        }
        self.keep_for_next();
        let epoch = self.next_epoch(now_ms);
        self.newest = epoch;
        self.leaving = false;
        let hub = Box::new(Hub::new(self.me));
        self.stand = Stand::Owning { epoch, hub };
        self.out.push_back(TabOutput::Listen(epoch));
        self.announce();
        self.tell_role(TabRole::Owner, epoch);
        self.out.push_back(TabOutput::Work);
        self.give_held();
    }

    /// Above every one that was heard of, and unlike that of another tab that begins in the same
    /// millisecond and was not heard.
    fn next_epoch(&self, now_ms: u64) -> Epoch {
        let own = self.me.0 & ((1 << OWN_BITS) - 1);
        let from = |time: u64| (time << OWN_BITS) | own;
        let after = from(self.newest.0 >> OWN_BITS) + (1 << OWN_BITS);
        Epoch(from(now_ms).max(after))
    }

    fn on_deposed(&mut self) {
        if !self.owns() {
            return;
        }
        // Files first: nothing is written after this.
        self.stop();
        self.stand = Stand::Seeking;
        self.keep_for_next();
        self.out.push_back(TabOutput::Seek);
        let client = self.me;
        self.out.push_back(TabOutput::Call(Call::Who { client }));
    }

    /// An owner that says nothing is asked whether it is there; one that does not answer is silent.
    fn on_tick(&mut self) {
        let waits = match &self.stand {
            Stand::Seeking => true,
            Stand::Following { welcomed, .. } => !welcomed || !self.pending.is_empty(),
            Stand::Owning { .. } | Stand::Outdated => false,
        };
        if !waits {
            self.quiet = 0;
            return;
        }
        self.quiet += 1;
        if self.quiet.is_multiple_of(ASK_AFTER) {
            let client = self.me;
            self.out.push_back(TabOutput::Call(Call::Who { client }));
        }
        if self.quiet == SILENT_AFTER {
            self.tell_role(TabRole::Silent, self.newest);
        }
    }

    fn give_held(&mut self) {
        for (command, attached) in std::mem::take(&mut self.held) {
            self.on_page(command, attached);
        }
    }

    fn announce(&mut self) {
        if let Stand::Owning { epoch, .. } = self.stand {
            let edition = self.edition.clone();
            let call = Call::Owner { epoch, edition };
            self.out.push_back(TabOutput::Call(call));
        }
    }

    fn ask(&mut self, epoch: Epoch, ask: Ask) {
        let client = self.me;
        let asked = ToOwner { epoch, client, ask };
        let attached = None;
        self.out.push_back(TabOutput::Ask { asked, attached });
    }

    fn tell_role(&mut self, role: TabRole, epoch: Epoch) {
        if self.told != Some((role, epoch)) {
            self.told = Some((role, epoch));
            let epoch = epoch.0;
            self.out
                .push_back(TabOutput::Page(Event::Role { role, epoch }));
        }
    }

    fn page(&mut self, event: Event) {
        if let Some(file) = self.pending.told(&event) {
            self.out.push_back(TabOutput::LetGo(file));
        }
        self.out.push_back(TabOutput::Page(event));
    }

    fn drain_hub(&mut self) {
        loop {
            let Stand::Owning { epoch, hub } = &mut self.stand else {
                return;
            };
            let epoch = *epoch;
            match hub.poll() {
                None => return,
                Some(HubOutput::Session(command, attached)) => {
                    self.out.push_back(TabOutput::Session { command, attached });
                }
                Some(HubOutput::LetGo(file)) => self.out.push_back(TabOutput::LetGo(file)),
                Some(HubOutput::Client(client, event)) if client == self.me => self.page(event),
                Some(HubOutput::Client(client, event)) => {
                    let tell = Tell::Event(event);
                    let told = ToClient { epoch, tell };
                    self.out.push_back(TabOutput::Tell { client, told });
                }
            }
        }
    }
}

/// Which of two pages was loaded by a person last; names decide between equals.
fn is_later(one: &Edition, other: &Edition) -> bool {
    let key = |edition: &Edition| (edition.opened_ms, edition.build.clone());
    one.build != other.build && key(one) > key(other)
}
