// Drives the console in Chromium: arguments are the program of the browser, the address of the
// service, the operator's token, `whole` or `smoke`, and a folder for pictures, when somebody wants
// to look at them.
//
// It signs in, opens every page that a person can get to, has axe look at each (as a whole, at the
// width of a desk and of a phone, light and dark), and signs out everywhere. What it saw goes to
// standard output.
import { createRequire } from "node:module";

const require = createRequire(process.cwd() + "/");
const puppeteer = require("puppeteer-core");
const { source: axe } = require("axe-core");

const [program, service, token, extent, folder] = process.argv.slice(2);
const isWhole = extent === "whole";
const WIDTHS = isWhole ? [1280, 390] : [1280];
const SCHEMES = isWhole ? ["light", "dark"] : ["light"];
// Of pages that differ only in what they are of, so many are opened.
const SAME_MAX = 2;

const browser = await puppeteer.launch({
  executablePath: program,
  headless: true,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
const page = await browser.newPage();
const seen = { pages: {}, violations: [], wide: [], foreign: [], errors: [], requests: 0 };

page.on("request", (request) => {
  seen.requests += 1;
  // The pictures of date fields are the browser's own.
  if (!request.url().startsWith(service) && !request.url().startsWith("data:")) {
    seen.foreign.push(request.url());
  }
});
page.on("pageerror", (error) => seen.errors.push(String(error)));
page.on("dialog", async (dialog) => {
  seen.errors.push(`a dialog: ${dialog.message()}`);
  await dialog.dismiss();
});
page.on("console", (message) => {
  // The status of a page that refuses is not a mistake of the page.
  const text = message.text();
  if (message.type() === "error" && !text.includes("the server responded with a status")) {
    seen.errors.push(`${page.url()}: ${text}`);
  }
});

// axe is put in from outside of the page, which allows no script of its own.
async function look(name) {
  for (const scheme of SCHEMES) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of WIDTHS) {
      await page.setViewport({ width, height: 900, isMobile: width < 600, hasTouch: width < 600 });
      const wide = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        return scrollWidth > clientWidth ? scrollWidth - clientWidth : 0;
      });
      if (wide > 0) seen.wide.push(`${name} at ${width}: ${wide} pixels`);
      await page.evaluate(axe);
      const found = await page.evaluate(async () => {
        const options = { resultTypes: ["violations"] };
        const { violations } = await globalThis.axe.run(document, options);
        return violations.map((it) => [it.id, it.nodes.map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`).slice(0, 3)]);
      });
      for (const [rule, nodes] of found) {
        seen.violations.push(`${name} ${scheme} ${width}: ${rule} ${nodes.join(" | ")}`);
      }
      if (folder) {
        await page.screenshot({ path: `${folder}/${name}-${width}-${scheme}.png`, fullPage: true });
      }
    }
  }
}

const nameOf = (url) => {
  const { pathname } = new URL(url);
  return pathname.replace(/^\/console\/?/, "").replaceAll("/", "-") || "overview";
};

// Without a sign-in every page leads to where one signs in.
await page.goto(`${service}/console/sessions?limit=5`);
seen.led = page.url().replace(service, "");
await look("sign-in");
await page.type("#token", "not-the-token-of-anybody-at-all");
await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
seen.wrong = await page.$eval("[role=alert]", (alert) => alert.textContent);
await look("sign-in-refused");
await page.type("#token", token);
await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
seen.after = page.url().replace(service, "");
const cookies = await browser.cookies();
seen.cookies = cookies.map(({ name, httpOnly, sameSite, secure }) => ({ name, httpOnly, sameSite, secure }));
seen.visible = await page.evaluate(() => document.cookie);

// The first stop of the keyboard is the link that skips what is above the page.
await page.goto(`${service}/console`);
await page.keyboard.press("Tab");
seen.first = await page.evaluate(() => document.activeElement.textContent);
await page.keyboard.press("Enter");
await page.keyboard.press("Tab");
seen.skipped = await page.evaluate(() => document.querySelector("main").contains(document.activeElement));

// What axe cannot find it would not find in the pages either.
await page.evaluate(axe);
seen.proof = await page.evaluate(async () => {
  document.documentElement.removeAttribute("lang");
  const { violations } = await globalThis.axe.run(document);
  return violations.map((it) => it.id);
});

// Then every page that a link leads to, from the overview on.
const waiting = [
  `${service}/console`,
  // Forms lead here, and no link does.
  `${service}/console/search`,
  `${service}/console/comparison?model_a=gpt-4o&model_b=claude-sonnet-4-5&margin=0.1`,
];
const opened = new Set();
const many = {};
while (waiting.length > 0) {
  const url = waiting.shift();
  const name = nameOf(url);
  if (opened.has(url) || (many[name] ?? 0) >= SAME_MAX) continue;
  opened.add(url);
  many[name] = (many[name] ?? 0) + 1;
  const response = await page.goto(url);
  seen.pages[url.replace(service, "")] = response.status();
  await look(many[name] === 1 ? name : `${name}-${many[name]}`);
  const links = await page.$$eval("main a[href], header a[href]", (all) => all.map((a) => a.href));
  waiting.push(...links.filter((link) => link.startsWith(`${service}/console`) && !link.includes("#")));
}

await page.goto(`${service}/console/sign-out`);
await Promise.all([page.waitForNavigation(), page.click("button[value=everywhere]")]);
await page.goto(`${service}/console`);
seen.out = page.url().replace(service, "");
await browser.close();
console.log(JSON.stringify(seen));
