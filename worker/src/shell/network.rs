//! What of the network comes to the session: whether there is one, what requests bring, and the
//! time.

use std::rc::Rc;

use store::News;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::Worker;
use crate::session::{Ask, FetchId, Input};
use crate::source::Source;

impl Worker {
    pub(super) fn hear_of_the_network(self: &Rc<Self>) {
        if !self.scope.navigator().on_line() {
            let is_online = false;
            self.give(Input::Network { is_online });
        }
        for (event, is_online) in [("online", true), ("offline", false)] {
            let worker = Rc::clone(self);
            let hear = Closure::<dyn FnMut()>::new(move || {
                worker.give(Input::Network { is_online });
            });
            let listener = hear.as_ref().unchecked_ref();
            if self
                .scope
                .add_event_listener_with_callback(event, listener)
                .is_err()
            {
                // Then waits end by themselves, only later.
            }
            // It listens as long as the worker lives.
            hear.forget();
        }
    }

    pub(super) fn fetch(self: &Rc<Self>, fetch: FetchId, source: Source, ask: Ask) {
        let url = ask.url.clone().unwrap_or_else(|| self.sources.url(source));
        let news = self.fetches.begin(&self.scope, fetch, &url, &ask);
        self.later_fetched(fetch, news);
    }

    /// Gives the session what a request brings next.
    pub(super) fn later_fetched(
        self: &Rc<Self>,
        fetch: FetchId,
        news: impl Future<Output = News> + 'static,
    ) {
        let worker = Rc::clone(self);
        let term = self.term.get();
        spawn_local(async move {
            let news = news.await;
            if worker.term.get() != term {
                return;
            }
            if matches!(news, News::End | News::Broken(_)) {
                worker.fetches.forget(fetch);
            }
            worker.give(Input::Fetched { fetch, news });
        });
    }

    /// A body is read no faster than what came before it is stored.
    pub(super) fn more_when_there_is_room(
        &self,
        fetch: FetchId,
    ) -> impl Future<Output = News> + use<> {
        let directory = self.directory.borrow().clone();
        let more = self.fetches.more(fetch);
        async move {
            if let Some(directory) = directory {
                directory.room().await;
            }
            more.await
        }
    }

    pub(super) fn wake_at(self: &Rc<Self>, at_ms: u64) {
        let wait = at_ms.saturating_sub(self.now_ms()).min(i32::MAX as u64);
        let worker = Rc::clone(self);
        let term = self.term.get();
        let wake = Closure::once_into_js(move || {
            if worker.term.get() == term {
                worker.give(Input::Time);
            }
        });
        // Timers may come a little early; a millisecond more than that is not noticed.
        let set = self
            .scope
            .set_timeout_with_callback_and_timeout_and_arguments_0(
                wake.unchecked_ref(),
                wait as i32 + 1,
            );
        if set.is_err() {
            // A worker that cannot set timers is about to end.
        }
    }
}
