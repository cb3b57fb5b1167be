package rules

// Defaults are the rules that hold for every target unless they are switched
// off: structural marks of the well-known bot walls, and generic signs on small
// pages. A mark is one that stands on the wall itself and not on the pages behind
// it: a vendor's sensor script, its cookies or its name do not count. Each is
// looked for on pages up to 50 KiB only, since articles quote walls.
func Defaults() []Rule {
	small := func(w When) When {
		w.MaxBytes = 50 << 10
		return w
	}
	wall := func(name string, w When) Rule {
		return Rule{Name: "default." + name, Kind: Decisive, Class: Blocked, When: w}
	}
	weak := func(name string, w When) Rule {
		return Rule{Name: "default." + name, Kind: Weak, Class: Suspect, When: w}
	}
	return []Rule{
		// developers.cloudflare.com, "Detect a Challenge Page response": the header is on all challenges.
		wall("cloudflare-challenge", When{Header: header("cf-mitigated", literal("challenge"))}),
		// The options object of the same page, for clients that keep no headers.
		wall("cloudflare-page", small(When{Contains: expression(`_cf_chl_opt\s*=\s*\{`)})),
		// The body of Cloudflare's error 1020, "access denied" by a firewall rule of the site.
		wall("cloudflare-denied", small(When{Status: []int{403}, Contains: words("error code: 1020", `id="cf-error-details"`)})),
		// docs.aws.amazon.com, AWS WAF developer guide, "CAPTCHA and Challenge action behavior".
		wall("aws-waf", When{Header: header("x-amzn-waf-action", expression(`^(challenge|captcha)`))}),
		// vercel.com docs, attack challenge mode.
		wall("vercel-challenge", When{Status: []int{403, 429}, Header: header("x-vercel-mitigated", literal("challenge"))}),
		// DataDome: the script and the frame of its captcha come from this host; its sensor comes from another.
		wall("datadome", small(When{Contains: words("geo.captcha-delivery.com", "ct.captcha-delivery.com")})),
		// HUMAN (PerimeterX): the element that its challenge is drawn in.
		wall("human", small(When{Contains: words(`id="px-captcha`, `id='px-captcha`)})),
		// Imperva: the sentence of the block page; the resource alone also stands on good pages.
		wall("imperva", small(When{Contains: words("incapsula incident id")})),
		// Akamai: the reference of an edge denial, and the container of Bot Manager's challenge.
		wall("akamai-denied", small(When{Contains: words("errors.edgesuite.net/", "reference&#32;&#35;")})),
		wall("akamai-challenge", small(When{Contains: literal("sec-if-cpt-container")})),
		// Kasada answers 429 with its script and means no rate.
		wall("kasada", small(When{Status: []int{403, 429}, Contains: words("kpsdk", "/ips.js?")})),
		// Sucuri: title of the block page.
		wall("sucuri", small(When{Contains: words("access denied - sucuri website firewall")})),
		// F5 (ASM, Advanced WAF): the default blocking page.
		wall("f5", small(When{Contains: literal("The requested URL was rejected. Please consult with your administrator.")})),
		// Weak signs: words that walls use, on small pages of HTML, and pages that show nothing.
		weak("words", When{
			Header: html(), MaxBytes: 10 << 10,
			Contains: words("captcha", "access denied", "access is denied", "access has been denied", "access to this page has been denied",
				"are you a robot", "are you human", "are you a human", "unusual traffic", "verify you are human", "verify that you are human",
				"verifying you are human", "automated access", "automated requests", "enable javascript and cookies", "pardon our interruption"),
		}),
		weak("no-text", When{Status: []int{200}, Header: html(), MaxText: 49}),
	}
}

func literal(s string) *Pattern     { return &Pattern{Text: s} }
func words(list ...string) *Pattern { return &Pattern{Words: list} }

func expression(s string) *Pattern { return &Pattern{Text: s, Regexp: true} }

func header(name string, value *Pattern) *Header { return &Header{Name: name, Value: value} }

func html() *Header { return header("Content-Type", expression(`(?i)^text/html`)) }
