use super::{Access, Explanation, Faults};
use crate::limit;
use crate::overview::{Overview, OverviewRequest};
use crate::problem::{Problem, QueryFault, ReportBound};
use crate::reports::{AcceptedWorkLifecycle, ModelOutcomes, ReportRequest};
use crate::spend::{SpendReport, SpendRequest};

const TOO_LARGE: Explanation = Explanation {
    description: "The cohort, the facts related to it, or the reply is too large for a report. There is \
                  no partial report.",
    problems: &[
        ("evidence", Problem::ReportBound(ReportBound::Evidence)),
        ("size", Problem::ReportBound(ReportBound::Reply)),
    ],
};

const COHORT: Faults = &[
    ("length", QueryFault::CohortTooLong),
    ("cohort", QueryFault::CohortReversed),
    ("boundary", QueryFault::CohortAfterBoundary),
];

endpoint! {
    ModelOutcomesReport: GET "/v1/reports/model-outcomes" as "modelOutcomes" for Access::Operator,
    ReportRequest => ModelOutcomes,
    "Report what became of each model's calls." {
        const REPLY_BYTES_MAX: usize = limit::REPORT_REPLY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(TOO_LARGE);
        const FAULTS: Faults = COHORT;
    }
}

endpoint! {
    AcceptedWorkLifecycleReport: GET "/v1/reports/accepted-work-lifecycle" as "acceptedWorkLifecycle" for Access::Operator,
    ReportRequest => AcceptedWorkLifecycle,
    "Report what became of accepted work, from the call to the merge." {
        const REPLY_BYTES_MAX: usize = limit::REPORT_REPLY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(TOO_LARGE);
        const FAULTS: Faults = COHORT;
    }
}

endpoint! {
    CohortSpendReport: GET "/v1/reports/spend" as "spendReport" for Access::Operator,
    SpendRequest => SpendReport,
    "Report what the calls of a cohort cost at list price, and what the spend became." {
        const REPLY_BYTES_MAX: usize = limit::REPORT_REPLY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(TOO_LARGE);
        const FAULTS: Faults = COHORT;
    }
}

endpoint! {
    OverviewQuery: GET "/v1/overview" as "overview" for Access::Operator,
    OverviewRequest => Overview,
    "Say what became of the work of the last days: in figures, by day, repository, model and Session, and what needs a look." {
        const REPLY_BYTES_MAX: usize = limit::REPORT_REPLY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(TOO_LARGE);
    }
}
