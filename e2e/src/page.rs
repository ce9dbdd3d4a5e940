//! The app's page, in three parts: what a person does, what a person sees, and waiting.

use std::path::Path;
use std::time::Duration;

use fantoccini::Locator;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::error::{E2eError, Result};

/// The page of a browser that shows the app.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    browser: &'a Browser,
}

// What a person does.
impl<'a> Page<'a> {
    /// Opens an address and waits until the app has started.
    pub async fn open(browser: &'a Browser, url: &str) -> Result<Page<'a>> {
        browser.client.goto(url).await?;
        let page = Page { browser };
        page.wait_started().await?;
        Ok(page)
    }

    /// The page that is shown already.
    pub fn shown(browser: &'a Browser) -> Page<'a> {
        Page { browser }
    }

    /// As a person reloads. The driver's own refresh goes past the service worker, like a forced
    /// reload, and then tests another thing.
    pub async fn reload(self) -> Result<()> {
        let leave = "window.leaving = true; location.reload()";
        self.browser.js(leave, &[]).await?;
        let probe = "
            const state = document.documentElement.dataset.state;
            return !window.leaving && Boolean(state) && state !== 'starting'";
        let after = Duration::from_secs(120);
        self.browser
            .wait("reloaded app", after, probe)
            .await
            .map(drop)
    }

    pub async fn click(self, selector: &str) -> Result<()> {
        self.wait_for(selector).await?;
        let element = self.browser.client.find(Locator::Css(selector)).await?;
        Ok(element.click().await?)
    }

    /// Chooses a file in the file field.
    pub async fn choose(self, file: &Path) -> Result<()> {
        self.choose_in("#file-input", file).await
    }

    /// Chooses a file in that field.
    pub async fn choose_in(self, field: &str, file: &Path) -> Result<()> {
        self.wait_for(field).await?;
        let field = self.browser.client.find(Locator::Css(field)).await?;
        Ok(field.send_keys(&file.to_string_lossy()).await?)
    }

    /// Drops a file of these bytes onto the window, as a drag from the desktop would.
    pub async fn drop_file(self, name: &str, url: &str) -> Result<()> {
        let script = "
            const bytes = await (await fetch(args[1])).arrayBuffer();
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], args[0]));
            for (const kind of ['dragenter', 'dragover', 'drop']) {
                window.dispatchEvent(new DragEvent(kind, {
                    dataTransfer: transfer, bubbles: true, cancelable: true,
                }));
            }";
        let args = [json!(name), json!(url)];
        self.browser.js(script, &args).await.map(drop)
    }

    /// Writes a message and sends it.
    pub async fn say(self, text: &str) -> Result<()> {
        self.wait_for("#composer").await?;
        let field = Locator::Css("#composer");
        let field = self.browser.client.find(field).await?;
        field.send_keys(text).await?;
        self.click("#send:not([disabled])").await
    }

    /// Writes a message, sends it and waits for the whole answer, which it returns.
    pub async fn ask(self, text: &str, after: Duration) -> Result<String> {
        let before = self.answers().await?.len();
        self.say(text).await?;
        let probe = format!(
            "return document.documentElement.dataset.state === 'ready' &&
                 document.querySelectorAll('.message.assistant').length > {before}"
        );
        self.browser.wait("answer", after, &probe).await?;
        Ok(self.answers().await?.pop().unwrap_or_default())
    }
}

// What a person sees.
impl Page<'_> {
    pub async fn state(self) -> Result<String> {
        let script = "return document.documentElement.dataset.state";
        self.words(script, &[]).await
    }

    /// The text of the first element, trimmed; empty if there is none.
    pub async fn text(self, selector: &str) -> Result<String> {
        let script = "return document.querySelector(args[0])?.innerText.trim() ?? ''";
        self.words(script, &[json!(selector)]).await
    }

    /// The conversation: who speaks (`user` or `assistant`) and what.
    pub async fn messages(self) -> Result<Vec<(String, String)>> {
        let script = "
            return [...document.querySelectorAll('#messages .message')].map((message) => [
                message.classList.contains('user') ? 'user' : 'assistant',
                message.querySelector('.text').innerText.trim(),
            ])";
        let value = self.browser.js(script, &[]).await?;
        serde_json::from_value(value.clone()).map_err(|_| E2eError::Shape {
            what: "the list of messages",
            found: value.to_string(),
        })
    }

    pub async fn answers(self) -> Result<Vec<String>> {
        let messages = self.messages().await?;
        let answers = messages.into_iter().filter(|(who, _)| who == "assistant");
        Ok(answers.map(|(_, text)| text).collect())
    }

    /// How far the import is, if one runs and says so.
    pub async fn import_percent(self) -> Result<Option<u64>> {
        let script = "
            return document.querySelector('#import-progress')?.getAttribute('aria-valuenow')";
        let value = self.browser.js(script, &[]).await?;
        Ok(value.as_str().and_then(|percent| percent.parse().ok()))
    }

    /// Models that the browser keeps, by the names of their files in its private storage.
    pub async fn stored_models(self) -> Result<Vec<String>> {
        let script = "
            const names = [];
            const root = await navigator.storage.getDirectory();
            const models = await root.getDirectoryHandle('models').catch(() => null);
            if (models) for await (const name of models.keys()) names.push(name);
            return names.sort()";
        let value = self.browser.js(script, &[]).await?;
        serde_json::from_value(value.clone()).map_err(|_| E2eError::Shape {
            what: "the list of stored files",
            found: value.to_string(),
        })
    }

    async fn words(self, script: &str, args: &[Value]) -> Result<String> {
        let value = self.browser.js(script, args).await?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }
}

// Waiting.
impl Page<'_> {
    pub async fn wait_state(self, state: &str, after: Duration) -> Result<()> {
        let probe = format!("return document.documentElement.dataset.state === '{state}'");
        let what = format!("state {state}");
        self.browser.wait(&what, after, &probe).await.map(drop)
    }

    /// The first text of an element that has any.
    pub async fn wait_text(self, selector: &str, after: Duration) -> Result<String> {
        let probe = format!("return document.querySelector('{selector}')?.innerText.trim()");
        let text = self.browser.wait(selector, after, &probe).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    pub async fn wait_percent(self, percent: u64, after: Duration) -> Result<()> {
        let probe = format!(
            "return Number(document.querySelector('#import-progress')
                 ?.getAttribute('aria-valuenow') ?? 0) >= {percent}"
        );
        let what = format!("import at {percent} %");
        self.browser.wait(&what, after, &probe).await.map(drop)
    }

    async fn wait_for(self, selector: &str) -> Result<()> {
        let probe = format!("return Boolean(document.querySelector('{selector}'))");
        let after = Duration::from_secs(30);
        self.browser.wait(selector, after, &probe).await.map(drop)
    }

    /// The page may reload itself once while it starts.
    async fn wait_started(self) -> Result<()> {
        let probe = "
            const state = document.documentElement.dataset.state;
            return Boolean(state) && state !== 'starting'";
        let after = Duration::from_secs(120);
        self.browser
            .wait("started app", after, probe)
            .await
            .map(drop)
    }
}
