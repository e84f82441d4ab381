//! How much to measure: presets, and what may be changed of them.

use std::time::Duration;

/// How many blocks of which length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// One block of 1 s: does it work at all? Never publishable
    Smoke,
    /// Three blocks of 3 s after 1 s of warm-up: an answer in minutes
    Snapshot,
    /// 10 to 30 blocks of 70 s after 15 s of warm-up, until the ratios are precise: an answer to stand by, in hours
    Publishable,
}

/// A preset's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    pub blocks: usize,
    pub most_blocks: usize,
    pub warmup: Duration,
    pub window: Duration,
}

impl Preset {
    pub fn length(self) -> Length {
        match self {
            Preset::Smoke => Length {
                blocks: 1,
                most_blocks: 1,
                warmup: Duration::from_millis(250),
                window: Duration::from_secs(1),
            },
            Preset::Snapshot => Length {
                blocks: 3,
                most_blocks: 3,
                warmup: Duration::from_secs(1),
                window: Duration::from_secs(3),
            },
            Preset::Publishable => Length {
                blocks: 10,
                most_blocks: 30,
                warmup: Duration::from_secs(15),
                window: Duration::from_secs(70),
            },
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Preset::Smoke => "smoke",
            Preset::Snapshot => "snapshot",
            Preset::Publishable => "publishable",
        }
    }
}
