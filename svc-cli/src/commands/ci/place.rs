//! How people name a run: by its id, or by the URL of a page of the CI system.

use svc_model::ingest::CiProvider;
use svc_model::query::RunUrl;

/// One interpretation of the text. Candidates are tried in order, exact ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) name: Name,
    /// The system whose page it is.
    pub(super) provider: Option<CiProvider>,
    /// The repository that the page belongs to, in lower case. Only set for systems whose ids are
    /// not unique across hosts.
    pub(super) repo: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Id(String),
    Url(String),
}

/// The candidates that a text names, and the attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CandidateRuns {
    pub(super) candidates: Vec<Candidate>,
    /// The attempt that the page shows.
    pub(super) attempt: Option<i64>,
}

impl CandidateRuns {
    fn add(&mut self, provider: CiProvider, name: Name) {
        self.candidates.push(Candidate {
            name,
            provider: Some(provider),
            repo: None,
        });
    }
}

/// Parses an id, or the URL of a page about a run or one of its jobs.
pub(super) fn read(text: &str) -> CandidateRuns {
    let text = text.trim();
    let anything = |name| Candidate {
        name,
        provider: None,
        repo: None,
    };
    if RunUrl::new(text).is_err() {
        return CandidateRuns {
            candidates: vec![anything(Name::Id(text.to_owned()))],
            attempt: None,
        };
    }
    let page = RunUrl::page(text);
    let (_, rest) = page.split_once("://").unwrap_or_default();
    let mut segments = rest.split('/');
    let host = segments.next().unwrap_or_default();
    let segments: Vec<String> = segments.map(decoded).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let fragment = text.split_once('#').map(|(_, fragment)| fragment);
    let mut named = CandidateRuns::default();
    // The id as it was reported, in any system.
    named.candidates.push(anything(Name::Url(page.to_owned())));
    if host == "buildkite.com" {
        buildkite(&segments, fragment, &mut named);
    } else if host == "circleci.com" || host == "app.circleci.com" {
        circleci(&segments, &mut named);
    } else if segments.contains(&"-") {
        gitlab(page, &segments, &mut named);
    } else if segments.contains(&"job") && !segments.contains(&"actions") {
        jenkins(page, &segments, &mut named);
    } else {
        actions(host, &segments, &mut named);
    }
    named
}

/// Returns the segment that follows another one.
fn after<'s>(segments: &[&'s str], name: &str) -> Option<&'s str> {
    let place = segments.iter().position(|segment| *segment == name)?;
    let found = segments.get(place + 1).copied()?;
    (!found.is_empty()).then_some(found)
}

/// `OWNER/NAME/actions/runs/ID[/attempts/N][/job/JOB]`, of GitHub and of forges that run its
/// workflows.
fn actions(host: &str, segments: &[&str], named: &mut CandidateRuns) {
    let Some(run) = after(segments, "runs") else {
        return;
    };
    named.attempt = after(segments, "attempts").and_then(|attempt| attempt.parse().ok());
    let repo = match segments {
        // GitHub's run ids are unique across its repositories.
        [owner, name, ..] if host != "github.com" => Some(format!("{owner}/{name}")),
        _ => None,
    };
    named.candidates.push(Candidate {
        name: Name::Id(run.to_owned()),
        provider: Some(CiProvider::ForgeActions),
        repo: repo.map(|repo| repo.to_lowercase()),
    });
}

/// `GROUP/PROJECT/-/pipelines/ID` and `GROUP/PROJECT/-/jobs/ID`.
fn gitlab(page: &str, segments: &[&str], named: &mut CandidateRuns) {
    if let Some(pipeline) = after(segments, "pipelines") {
        // A pipeline's page has subpages, and its jobs have pages of their own.
        named.add(CiProvider::CiB, Name::Id(pipeline.to_owned()));
    } else if let Some(job) = after(segments, "jobs")
        && let Some((project, _)) = page.split_once("/-/")
    {
        named.add(
            CiProvider::CiB,
            Name::Url(format!("{project}/-/jobs/{job}")),
        );
    }
}

/// `job/FOLDER/job/NAME/NUMBER/…`, possibly below the path that Jenkins is served at.
fn jenkins(page: &str, segments: &[&str], named: &mut CandidateRuns) {
    let Some(first) = segments.iter().position(|segment| *segment == "job") else {
        return;
    };
    let mut names = Vec::new();
    let mut place = first;
    while segments.get(place) == Some(&"job") && place + 1 < segments.len() {
        names.push(segments[place + 1]);
        place += 2;
    }
    let Some(number) = segments
        .get(place)
        .filter(|segment| segment.parse::<u64>().is_ok())
    else {
        return;
    };
    // The page of the build itself; its console and test pages are below it.
    if let Some(end) = page.rfind(&format!("/{number}/")) {
        let build = &page[..=end + number.len()];
        named.add(CiProvider::CiA, Name::Url(build.to_owned()));
    }
    names.push(number);
    named.add(CiProvider::CiA, Name::Id(names.join("/")));
}

/// `gh/OWNER/NAME/JOB` in reports, and
/// `pipelines/github/OWNER/NAME/PIPELINE/workflows/WORKFLOW/jobs/JOB` in current page URLs.
fn circleci(segments: &[&str], named: &mut CandidateRuns) {
    let project = match segments {
        ["pipelines" | "jobs", vcs, owner, name, ..] | [vcs, owner, name, _, ..] => {
            Some((*vcs, *owner, *name))
        }
        _ => None,
    };
    let job = match segments {
        ["pipelines", ..] => after(segments, "jobs"),
        ["jobs", _, _, _, job, ..] | [_, _, _, job, ..] => Some(*job),
        _ => None,
    };
    if let (Some((vcs, owner, name)), Some(job)) = (project, job) {
        let short = match vcs {
            "github" => "gh",
            "bitbucket" => "bb",
            other => other,
        };
        let long = match vcs {
            "gh" => "github",
            "bb" => "bitbucket",
            other => other,
        };
        for vcs in [short, long] {
            let url = format!("https://circleci.com/{vcs}/{owner}/{name}/{job}");
            let name = Name::Url(url);
            if !named
                .candidates
                .iter()
                .any(|candidate| candidate.name == name)
            {
                named.add(CiProvider::CiC, name);
            }
        }
    }
    if let Some(workflow) = after(segments, "workflows") {
        named.add(CiProvider::CiC, Name::Id(workflow.to_owned()));
    }
}

/// `ORGANIZATION/PIPELINE/builds/NUMBER`; a fragment names a job on the page.
fn buildkite(segments: &[&str], fragment: Option<&str>, named: &mut CandidateRuns) {
    // The jobs of a build share its URL, so the job in the fragment comes first.
    if let Some(job) = fragment.filter(|job| job.contains('-')) {
        let job = Candidate {
            name: Name::Id(job.split('/').next().unwrap_or_default().to_owned()),
            provider: Some(CiProvider::CiD),
            repo: None,
        };
        named.candidates.insert(0, job);
    }
    if let [organization, pipeline, "builds", number, ..] = segments {
        named.add(
            CiProvider::CiD,
            Name::Url(format!(
                "https://buildkite.com/{organization}/{pipeline}/builds/{number}"
            )),
        );
    }
}

/// Returns a path segment with its percent-encoding removed.
fn decoded(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is looked for, in order.
    fn names(text: &str) -> Vec<String> {
        let named = read(text);
        let names = named
            .candidates
            .iter()
            .map(|candidate| match &candidate.name {
                Name::Id(id) => format!("id {id}"),
                Name::Url(url) => url.clone(),
            });
        names.collect()
    }

    #[test]
    fn text_that_is_not_a_url_is_taken_as_a_run_id() {
        for id in ["7000", "team/shop/PR-24/153", "7a1d93f0", "500/test 1/3"] {
            assert_eq!(names(id), [format!("id {id}")]);
        }
    }

    #[test]
    fn pages_of_github_name_the_run_and_its_attempt() {
        let run = "https://github.com/a/b/actions/runs/7000";
        assert_eq!(names(run), [run, "id 7000"]);
        let attempt = read(&format!("{run}/attempts/2?pr=1"));
        assert_eq!(attempt.attempt, Some(2));
        assert_eq!(attempt.candidates[1].name, Name::Id("7000".to_owned()));
        assert_eq!(attempt.candidates[1].repo, None);
        assert_eq!(names(&format!("{run}/job/9#step:3:1"))[1], "id 7000");
        let elsewhere = read("https://git.example/A/b/actions/runs/12");
        assert_eq!(elsewhere.candidates[1].repo.as_deref(), Some("a/b"));
    }

    #[test]
    fn pages_of_gitlab_name_a_pipeline_or_a_job() {
        let project = "https://gitlab.example/group/sub/shop";
        assert_eq!(
            names(&format!("{project}/-/pipelines/500/builds")),
            [&*format!("{project}/-/pipelines/500/builds"), "id 500"]
        );
        let job = format!("{project}/-/jobs/9001");
        assert_eq!(names(&format!("{job}#L12")), [&*job, &*job]);
    }

    #[test]
    fn pages_of_jenkins_name_the_build() {
        let build = "https://ci.example/jenkins/job/team/job/shop/job/PR-24/153";
        assert_eq!(
            names(&format!("{build}/console")),
            [
                &*format!("{build}/console"),
                build,
                "id team/shop/PR-24/153"
            ]
        );
        assert_eq!(names(&format!("{build}/"))[1], "id team/shop/PR-24/153");
        let branch = "https://ci.example/job/shop/job/feature%252Fx/7";
        assert_eq!(names(branch)[1], "id shop/feature%2Fx/7");
        assert_eq!(
            names("https://ci.example/job/shop/"),
            ["https://ci.example/job/shop"]
        );
    }

    #[test]
    fn pages_of_circleci_name_a_job_old_and_new() {
        let old = "https://circleci.com/gh/acme/shop/33";
        assert_eq!(
            names(old),
            [old, "https://circleci.com/github/acme/shop/33"]
        );
        let workflow = "https://app.circleci.com/pipelines/github/acme/shop/12/workflows/0a1b-2c";
        assert_eq!(
            names(&format!("{workflow}/jobs/33")),
            [
                &*format!("{workflow}/jobs/33"),
                old,
                "https://circleci.com/github/acme/shop/33",
                "id 0a1b-2c"
            ]
        );
        assert_eq!(names(workflow), [workflow, "id 0a1b-2c"]);
    }

    #[test]
    fn pages_of_buildkite_name_a_build_or_one_of_its_jobs() {
        let build = "https://buildkite.com/acme/shop/builds/1514";
        assert_eq!(names(build), [build, build]);
        assert_eq!(
            names(&format!("{build}/steps/canvas#018f-aa")),
            ["id 018f-aa", &*format!("{build}/steps/canvas"), build]
        );
    }
}
