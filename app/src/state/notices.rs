//! What went wrong and has not been put aside yet.

use protocol::ErrorReport;

/// More than three at once are not read; older ones stay in the diagnostics.
const NOTICES_MAX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoticeId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub id: NoticeId,
    pub report: ErrorReport,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notices {
    last: u32,
    shown: Vec<Notice>,
}

impl Notices {
    /// Oldest first.
    pub fn shown(&self) -> &[Notice] {
        &self.shown
    }

    /// The same failure again takes the place of the one before.
    pub fn add(&mut self, report: ErrorReport) {
        self.shown.retain(|notice| notice.report != report);
        if self.shown.len() == NOTICES_MAX {
            self.shown.remove(0);
        }
        self.last += 1;
        self.shown.push(Notice {
            id: NoticeId(self.last),
            report,
        });
    }

    pub fn add_all(&mut self, reports: impl IntoIterator<Item = ErrorReport>) {
        reports.into_iter().for_each(|report| self.add(report));
    }

    pub fn dismiss(&mut self, id: NoticeId) {
        self.shown.retain(|notice| notice.id != id);
    }

    pub fn clear(&mut self) {
        self.shown.clear();
    }
}
