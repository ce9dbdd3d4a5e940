//! A text as a QR code, for a page and for a terminal.

use qrcode::{Color, EcLevel, QrCode};

use crate::{P2pError, SignalFault};

/// Light modules around the code, without which readers do not find it (ISO 18004).
const QUIET: usize = 4;

/// Squares, dark or light.
pub struct Qr {
    width: usize,
    dark: Vec<bool>,
}

impl Qr {
    /// With the least redundancy: a screen is not a torn label, and fewer squares are larger.
    pub fn new(text: &str) -> Result<Qr, P2pError> {
        let code = QrCode::with_error_correction_level(text, EcLevel::L);
        let code = code.map_err(|_| SignalFault::TooLong)?;
        let dark = code
            .to_colors()
            .into_iter()
            .map(|color| color == Color::Dark);
        Ok(Qr {
            width: code.width(),
            dark: dark.collect(),
        })
    }

    /// Squares along one side, with the light frame.
    pub fn width(&self) -> usize {
        self.width + 2 * QUIET
    }

    pub fn is_dark(&self, x: usize, y: usize) -> bool {
        let inside = |at: usize| at.checked_sub(QUIET).filter(|at| *at < self.width);
        match (inside(x), inside(y)) {
            (Some(x), Some(y)) => self.dark[y * self.width + x],
            _ => false,
        }
    }

    /// The `d` of an SVG path of all dark squares, one unit each, for a view box of
    /// [`width`](Qr::width) units.
    pub fn svg_path(&self) -> String {
        let mut path = String::new();
        for y in 0..self.width() {
            let mut x = 0;
            while x < self.width() {
                let run = (x..self.width())
                    .take_while(|x| self.is_dark(*x, y))
                    .count();
                if run > 0 {
                    path.push_str(&format!("M{x} {y}h{run}v1h-{run}z"));
                }
                x += run.max(1);
            }
        }
        path
    }

    /// Lines of half blocks: two squares a character, light ones drawn, for a dark terminal.
    pub fn to_terminal(&self) -> String {
        let mut lines = String::new();
        for y in (0..self.width()).step_by(2) {
            for x in 0..self.width() {
                let below = y + 1 < self.width() && !self.is_dark(x, y + 1);
                lines.push(match (!self.is_dark(x, y), below) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => ' ',
                });
            }
            lines.push('\n');
        }
        lines
    }
}
