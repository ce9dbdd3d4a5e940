//! What a value in the call may be. The words of a refusal follow the option's name.

use format::{Digest, Root};

fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("this is no number".into()),
    }
}

pub fn above_zero(text: &str) -> Result<f64, String> {
    match number(text)? {
        number if number > 0.0 => Ok(number),
        _ => Err("it must be above 0".into()),
    }
}

pub fn not_below_zero(text: &str) -> Result<f32, String> {
    match number(text)? as f32 {
        number if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err("it must be 0 or more".into()),
    }
}

pub fn share(text: &str) -> Result<f32, String> {
    match number(text)? as f32 {
        number if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("it must be 0 to 1".into()),
    }
}

pub fn root(text: &str) -> Result<Root, String> {
    let root = Digest::from_hex(text).map(Root);
    root.ok_or_else(|| "a root is 64 hexadecimal digits".into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::Cli;

    /// Whatever can be written in a call is explained where help is asked for.
    #[test]
    fn every_option_has_words() {
        let program = Cli::command();
        let mut options = 0;
        for command in program.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                let name = format!("{} {}", command.get_name(), argument.get_id());
                assert!(argument.get_help().is_some(), "{name}");
                for value in argument.get_possible_values() {
                    let is_plain = ["true", "false"].contains(&value.get_name());
                    assert!(is_plain || value.get_help().is_some(), "{name} {value:?}");
                }
                options += 1;
            }
        }
        assert!(options > 50, "{options}");
    }
}
