// What pages gain where scripts run: copying, a theme switch, and figures that follow the store. Nothing needs it.
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

if (document.querySelector(".top nav")) {
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
