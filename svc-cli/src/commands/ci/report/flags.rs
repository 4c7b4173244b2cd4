//! The command-line options that describe a run.

use clap::Args;
use svc_model::ingest::CiResult;

use super::system::System;
use crate::commands::one_of::one_of;

/// The fields of a report. Each overrides the CI system's variables.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Flags {
    /// The result.
    #[arg(long, value_parser = one_of(CiResult::ALL, CiResult::as_str), conflicts_with = "status")]
    pub(super) result: Option<CiResult>,

    /// The result in the CI system's own word.
    #[arg(long, value_name = "WORD")]
    pub(super) status: Option<String>,

    /// Why, for people; credentials in it are redacted.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,

    /// Report the whole run (pipeline, workflow, build) instead of this job: once, at its end.
    #[arg(long)]
    pub(super) whole_run: bool,

    /// The CI system, if its variables do not identify it.
    #[arg(long, value_enum)]
    pub(super) system: Option<System>,

    /// The id of the run.
    #[arg(long, value_name = "ID")]
    pub(super) run_id: Option<String>,

    /// The attempt, from 1.
    #[arg(long, value_name = "NUMBER")]
    pub(super) run_attempt: Option<String>,

    /// The repository.
    #[arg(long, value_name = "OWNER/NAME")]
    pub(super) repo: Option<String>,

    /// The forge's number of the repository; with the host, it joins the outcome to the forge's
    /// webhooks.
    #[arg(long, value_name = "NUMBER")]
    pub(super) repository_id: Option<String>,

    /// The host of the forge.
    #[arg(long, value_name = "HOST")]
    pub(super) repository_host: Option<String>,

    /// The commit that was checked: its full id, or inside a clone any name that git knows, such as
    /// HEAD.
    #[arg(long, value_name = "COMMIT")]
    pub(super) commit: Option<String>,

    /// The branch that was checked; empty for none.
    #[arg(long, value_name = "NAME")]
    pub(super) branch: Option<String>,

    /// The name of the workflow.
    #[arg(long, value_name = "NAME")]
    pub(super) workflow_name: Option<String>,

    /// The system's id of the workflow.
    #[arg(long, value_name = "ID")]
    pub(super) workflow_id: Option<String>,

    /// The path of the workflow's definition.
    #[arg(long, value_name = "PATH")]
    pub(super) workflow_path: Option<String>,

    /// The page of the run.
    #[arg(long, value_name = "URL")]
    pub(super) run_url: Option<String>,

    /// The system's own word for the result, alongside --result.
    #[arg(long, value_name = "WORD", conflicts_with = "status")]
    pub(super) provider_result: Option<String>,

    /// The kind of failure.
    #[arg(long, value_name = "KIND")]
    pub(super) error_type: Option<String>,
}
