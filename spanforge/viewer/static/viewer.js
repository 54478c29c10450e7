// What pages gain where scripts run: copying, a theme switch, local time, keys, and figures that follow the store.
// Nothing needs it.
"use strict";

const said = document.querySelector("[data-said]");
const say = (text) => { said.textContent = text; };

// Storage may be switched off; then a choice lasts as long as the page.
const kept = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* as said above */ } },
};

const themes = ["system", "light", "dark"];
const themeSwitch = document.querySelector("[data-theme-switch]");
const showTheme = (theme) => {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeSwitch.textContent = `Theme: ${theme}`;
};
let theme = themes.includes(kept.get("spanforge-theme")) ? kept.get("spanforge-theme") : "system";
showTheme(theme);
themeSwitch.hidden = false;
themeSwitch.addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  kept.set("spanforge-theme", theme);
  showTheme(theme);
});

// Times come in UTC, and are written anew in the same form where somebody wants his own.
const clock = document.querySelector("[data-clock-switch]");
const two = (number) => String(number).padStart(2, "0");
const local = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
const showTimes = () => {
  const own = kept.get("spanforge-clock") === "local";
  clock.textContent = own ? "Times: local" : "Times: UTC";
  for (const time of document.querySelectorAll("time[datetime]")) {
    time.dataset.utc ??= time.textContent;
    const at = new Date(time.dateTime);
    time.textContent = own && !isNaN(at) ? local(at).slice(0, time.dataset.utc.length) : time.dataset.utc;
  }
  for (const zone of document.querySelectorAll("[data-zone]")) zone.textContent = own ? "local" : "UTC";
};
showTimes();
clock.hidden = false;
clock.addEventListener("click", () => {
  kept.set("spanforge-clock", kept.get("spanforge-clock") === "local" ? "utc" : "local");
  showTimes();
});

// Single keys, which can be switched off: whoever speaks to the machine presses many without meaning to.
const keys = document.querySelector("[data-keys-switch]");
const showKeys = () => { keys.textContent = kept.get("spanforge-keys") === "off" ? "Keys: off" : "Keys: on"; };
showKeys();
for (const one of [keys, document.querySelector("[data-keys]")]) one.hidden = false;
keys.addEventListener("click", () => {
  kept.set("spanforge-keys", kept.get("spanforge-keys") === "off" ? "on" : "off");
  showKeys();
});
const step = (by) => {
  const rows = [...document.querySelectorAll(".cards tbody .id")];
  const beside = document.querySelector(by > 0 ? "a[rel=next]" : "a[rel=prev]");
  if (rows.length) rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(document.activeElement) + by))]?.focus();
  else beside?.click();
};
const does = { "/": () => document.getElementById("query")?.focus(), j: () => step(1), k: () => step(-1) };
document.addEventListener("keydown", (event) => {
  const writing = event.target.closest("input, select, textarea");
  if (writing || event.ctrlKey || event.metaKey || event.altKey || kept.get("spanforge-keys") === "off") return;
  if (!Object.hasOwn(does, event.key)) return;
  event.preventDefault();
  does[event.key]();
});

const offerCopies = () => {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
};
offerCopies();
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } catch {
    say("The browser did not allow copying");
  }
});

// Live figures: ask for the stamp, and fetch the page again only where it has changed and nobody is in the middle of it.
const EVERY_MS = 3000;
const SLOWEST_MS = 60000;
const pause = document.querySelector("[data-pause]");
const region = document.getElementById("live");
let stamp = document.body.dataset.stamp;
let complete = document.body.dataset.complete;
let paused = matchMedia("(prefers-reduced-motion: reduce)").matches;
if (kept.get("spanforge-paused") !== null) paused = kept.get("spanforge-paused") === "yes";
let wait = EVERY_MS;

const busy = () => {
  const focus = document.activeElement;
  return (focus && focus !== document.body && region.contains(focus)) || String(getSelection()) !== "";
};

const refresh = async () => {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (busy()) return;
  const open = [...region.querySelectorAll("details[open][id]")].map((one) => one.id);
  const before = new Set([...region.querySelectorAll(".cards tbody .id")].map((one) => one.href));
  region.replaceChildren(...page.getElementById("live").childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  for (const link of region.querySelectorAll(".cards tbody .id")) {
    if (before.size && !before.has(link.href)) link.closest("tr").classList.add("fresh");
  }
  stamp = page.body.dataset.stamp;
  complete = page.body.dataset.complete;
  offerCopies();
  showTimes();
  say(`Updated ${new Date().toISOString().slice(11, 19)} UTC`);
};

const look = async () => {
  if (!paused && !document.hidden) {
    try {
      const answer = await fetch(document.body.dataset.live, { redirect: "error" });
      if (answer.status === 401) location.reload();
      const now = await answer.json();
      const changed = String(now.stamp) !== stamp || (now.complete ? "yes" : "no") !== complete;
      if (changed && !busy()) await refresh();
      wait = EVERY_MS;
    } catch {
      wait = Math.min(wait * 2, SLOWEST_MS);
      say("The viewer does not answer; trying again");
    }
  }
  setTimeout(look, wait);
};

if (document.body.dataset.live) {
  const showPause = () => {
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    pause.setAttribute("aria-pressed", String(paused));
  };
  showPause();
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    kept.set("spanforge-paused", paused ? "yes" : "no");
    showPause();
    say(paused ? "Updates paused" : "Updates resumed");
  });
  setTimeout(look, EVERY_MS);
}
