//! A conversation becomes text: the model's own Jinja template in a bounded interpreter.
//!
//! The settings are those of Hugging Face transformers (`trim_blocks`, `lstrip_blocks`, Python
//! string methods, `raise_exception`), so that templates written for it give the same text.

use std::io;

use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, context};

use crate::PromptError;

/// Interpreter steps for one conversation; a long chat takes some thousands.
pub(crate) const FUEL: u64 = 2_000_000;
/// A rendered conversation larger than any context.
pub(crate) const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;

const NAME: &str = "chat";

pub(crate) struct Template {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
}

impl Template {
    pub(crate) fn parse(source: &str, bos: String, eos: String) -> Result<Template, PromptError> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |reason: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, reason))
            },
        );
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(refused)?;
        Ok(Template {
            environment,
            source: source.to_owned(),
            bos,
            eos,
        })
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// `messages` are (role, content) pairs.
    pub(crate) fn render(
        &self,
        messages: &[(&str, &str)],
        add_generation_prompt: bool,
    ) -> Result<String, PromptError> {
        let messages: Vec<Value> = messages
            .iter()
            .map(|(role, content)| context! { role => *role, content => *content })
            .collect();
        let mut out = Bounded {
            bytes: Vec::new(),
            full: false,
        };
        let rendered = self.environment.get_template(NAME).and_then(|template| {
            let context = context! {
                messages,
                add_generation_prompt,
                bos_token => self.bos,
                eos_token => self.eos,
                tools => Value::from(()),
                documents => Value::from(()),
            };
            template.render_captured_to(context, &mut out).map(|_| ())
        });
        if out.full {
            return Err(PromptError::TemplateOutput {
                limit: OUTPUT_BYTES_MAX,
            });
        }
        rendered.map_err(refused)?;
        String::from_utf8(out.bytes).map_err(|error| PromptError::Template {
            line: None,
            reason: error.to_string(),
        })
    }
}

fn refused(error: Error) -> PromptError {
    if error.kind() == ErrorKind::OutOfFuel {
        return PromptError::TemplateSteps { limit: FUEL };
    }
    let reason = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    };
    PromptError::Template {
        line: error.line(),
        reason,
    }
}

/// Takes bytes up to the limit, then refuses.
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > OUTPUT_BYTES_MAX {
            self.full = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[(&str, &str)]) -> Result<String, PromptError> {
        Template::parse(source, "<s>".into(), "</s>".into())?.render(messages, true)
    }

    // Texts as Jinja2 3.1 with trim_blocks and lstrip_blocks gives them.
    #[test]
    fn follows_the_reference_settings() {
        let check = |source, want: &str| {
            assert_eq!(
                render(source, &[("user", " Hi ")]).as_deref(),
                Ok(want),
                "{source}"
            );
        };
        check(
            "{% for m in messages %}\n  {% if true %}\nx\n  {% endif %}\n{% endfor %}",
            "x\n",
        );
        check(
            "{{ bos_token }}{{ messages[0]['content'].strip() }}{{ eos_token }}",
            "<s>Hi</s>",
        );
        check("{{ messages[0].content | trim }}", "Hi");
        check("{{ tools is none }}{{ nothing is defined }}", "TrueFalse");
        check(
            "{% set ns = namespace(n=0) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}",
            "1",
        );
    }

    #[test]
    fn is_bounded() {
        let loops = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";
        assert_eq!(
            render(loops, &[]),
            Err(PromptError::TemplateSteps { limit: FUEL })
        );
        let long = "{% for i in range(9999) %}{{ 'x' * 9999 }}{% endfor %}";
        assert_eq!(
            render(long, &[]),
            Err(PromptError::TemplateOutput {
                limit: OUTPUT_BYTES_MAX
            })
        );
        let deep = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
        assert!(matches!(
            render(deep, &[]),
            Err(PromptError::Template { .. })
        ));
    }

    #[test]
    fn says_where_it_fails() {
        let check = |source, line, reason: &str| match render(source, &[]) {
            Err(PromptError::Template {
                line: found,
                reason: text,
            }) => {
                assert_eq!(found, line, "{source}");
                assert!(text.contains(reason), "{text}");
            }
            other => panic!("{source}: {other:?}"),
        };
        check("a\n{% if %}", Some(2), "unexpected");
        check(
            "{{ raise_exception('roles must alternate') }}",
            Some(1),
            "roles must alternate",
        );
        check("{{ strftime_now('%Y') }}", Some(1), "strftime_now");
    }
}
