package forge

import (
	"contend/targets"
)

// webTrigger is the code of answers that are the web trigger's own, not the
// store's.
const webTrigger = "WEB_TRIGGER"

const webTriggerFacts = "Forge web trigger documentation"

var webTriggerAnswers = targets.Answers{
	{Code: webTrigger, Status: 429, Outcome: targets.Throttled, Source: webTriggerFacts},
	{Code: webTrigger, Status: 200, Outcome: targets.Unmapped, Source: "not the companion app's answer: a login page, say"},
	{Code: webTrigger, Status: 202, Outcome: targets.Unknown, Source: "accepted is not done"},
	{Code: webTrigger, Status: 3, Outcome: targets.Invalid, Source: "redirects are not followed"},
	{Code: webTrigger, Status: 400, Outcome: targets.Invalid, Source: "the companion app: not an op"},
	{Code: webTrigger, Status: 401, Outcome: targets.Invalid, Source: "the companion app: the token is wrong"},
	{Code: webTrigger, Status: 403, Outcome: targets.Invalid, Source: webTriggerFacts},
	{Code: webTrigger, Status: 404, Outcome: targets.Invalid, Source: webTriggerFacts + ": no such trigger"},
	{Code: webTrigger, Status: 405, Outcome: targets.Invalid, Source: webTriggerFacts},
	{Code: webTrigger, Status: 413, Outcome: targets.Invalid, Source: webTriggerFacts + ": payload over 5 MB"},
	{Code: webTrigger, Status: 424, Outcome: targets.Invalid, Source: webTriggerFacts + ": the app was uninstalled"},
	{Code: webTrigger, Status: 408, Outcome: targets.Unknown, Source: "the function may have run"},
	{Code: webTrigger, Status: 5, Outcome: targets.Unknown, Source: "the function may have run"},
}

const forgeSQLFacts = "Forge SQL documentation: error handling"

// forgeSQLAnswers: a number is the database's own, which the app finds in a
// SQL_EXECUTION_ERROR.
var forgeSQLAnswers = targets.Answers{
	{Code: "0 rows", Status: 200, Outcome: targets.Conflict, Source: "affectedRows 0: @forge/sql 4.0.8; an article on optimistic locking in Forge SQL"},
	{Code: "9007", Outcome: targets.Aborted, Source: "TiDB error codes: write conflict; that it is shown is an assumption"},
	{Code: "1213", Outcome: targets.Aborted, Source: "MySQL and TiDB error codes: deadlock, rolled back"},
	{Code: "SQL_EXECUTION_ERROR", Outcome: targets.Invalid, Source: forgeSQLFacts},
	{Code: "QUERY_TIMED_OUT", Outcome: targets.Unknown, Source: forgeSQLFacts + ": the database goes on with it"},
	{Code: "INVALID_SQL_QUERY", Outcome: targets.Invalid, Source: forgeSQLFacts},
	{Code: "APP_NOT_ENABLED", Outcome: targets.Invalid, Source: "@forge/sql 4.0.8: the app has no database"},
	{Code: "out-of-range", Outcome: targets.Invalid, Source: "the companion app: INSERT IGNORE would cut it to fit"},
	{Code: "SQL_POLICY_VIOLATION", Outcome: targets.Invalid, Source: "the platform's code, by its name"},
}
