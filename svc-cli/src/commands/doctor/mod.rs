//! Checks of the setup, each with the command that fixes a problem.

mod agents;
mod clone;
mod local;
mod prices;
mod remote;

use clap::Args;
use serde::Serialize;

use super::mirror::MirrorOptions;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    mirror: MirrorOptions,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    /// It works.
    Ok,
    /// It works, but something may be missing.
    Warning,
    /// It does not work.
    Failed,
    /// It is not used, so there is nothing to check.
    Absent,
}

impl CheckState {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "FAILED",
            Self::Absent => "-",
        }
    }
}

/// One check.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct DoctorCheck {
    name: &'static str,
    state: CheckState,
    found: String,
    /// The command or change that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl DoctorCheck {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: CheckState::Ok,
            found: found.into(),
            mend: None,
        }
    }

    fn absent(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: CheckState::Absent,
            ..Self::ok(name, found)
        }
    }

    fn warning(name: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            state: CheckState::Warning,
            mend: Some(mend.into()),
            ..Self::ok(name, found)
        }
    }

    fn failed(name: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            state: CheckState::Failed,
            ..Self::warning(name, found, mend)
        }
    }
}

/// All checks.
#[derive(Debug, Serialize)]
struct Diagnosis {
    failed: usize,
    checks: Vec<DoctorCheck>,
}

impl Doctor {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let (mut checks, keeps_mirrors) = remote::checks(&self.service);
        checks.extend(local::checks(&self.mirror, &self.service, keeps_mirrors));
        checks.extend(clone::checks());
        checks.extend(agents::checks());
        let failed = checks
            .iter()
            .filter(|check| check.state == CheckState::Failed);
        let diagnosis = Diagnosis {
            failed: failed.count(),
            checks,
        };
        output.value(&diagnosis, render)?;
        match diagnosis.failed {
            0 => Ok(()),
            1 => Err(CommandError::refused("unhealthy", "one check failed")),
            count => Err(CommandError::refused(
                "unhealthy",
                format!("{count} checks failed"),
            )),
        }
    }
}

fn render(diagnosis: &Diagnosis) -> String {
    let width = diagnosis.checks.iter().map(|check| check.name.len()).max();
    let width = width.unwrap_or(0);
    let lines = diagnosis.checks.iter().flat_map(|check| {
        let (state, found) = (check.state.word(), escape(&check.found));
        let mend = check.mend.as_deref().map(|mend| {
            let mend = escape(mend);
            format!("{:<width$}  {:<7}  fix: {mend}\n", "", "")
        });
        let line = format!("{:<width$}  {state:<7}  {found}\n", check.name);
        [Some(line), mend].into_iter().flatten()
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_followed_by_its_fix() {
        let diagnosis = Diagnosis {
            failed: 1,
            checks: vec![
                DoctorCheck::ok("service", "https://svc.example"),
                DoctorCheck::failed("token", "it is unknown", "svc login https://svc.example"),
                DoctorCheck::absent("codex", "no configuration"),
            ],
        };
        assert_eq!(
            render(&diagnosis),
            "service  ok       https://svc.example\n\
             token    FAILED   it is unknown\n                  \
             fix: svc login https://svc.example\n\
             codex    -        no configuration\n"
        );
    }
}
