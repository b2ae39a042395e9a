
// Watching: asks the server for changes, and replaces the sections that have changed.

const EVERY = 2000; // milliseconds
const known = new Map(); // the sections as the server sent them, by id

function sections(page) {
  return [...page.querySelectorAll("main > section")];
}

const nameOf = (section) => section.id || section.getAttribute("aria-labelledby");

// What the reader has set in a figure, so that new curves do not undo it.
function settings(section) {
  return {
    off: [...section.querySelectorAll("button[aria-pressed=false]")].map((b) => b.dataset.method),
    selects: [...section.querySelectorAll("select")].map((select) => select.value),
    boxes: [...section.querySelectorAll("input[type=checkbox]")].map((input) => input.checked),
    open: [...section.querySelectorAll("details")].map((details) => details.open),
  };
}

function restore(section, { off, selects, boxes, open }) {
  for (const button of section.querySelectorAll("button[data-method]")) {
    if (off.includes(button.dataset.method)) button.click();
  }
  const changed = (element) => element.dispatchEvent(new Event("change", { bubbles: true }));
  section.querySelectorAll("select").forEach((select, i) => {
    if (selects[i] !== undefined && select.value !== selects[i]) { select.value = selects[i]; changed(select); }
  });
  section.querySelectorAll("input[type=checkbox]").forEach((input, i) => {
    if (boxes[i] !== undefined && input.checked !== boxes[i]) { input.checked = boxes[i]; changed(input); }
  });
  section.querySelectorAll("details").forEach((details, i) => { details.open = open[i] ?? details.open; });
}

function place(section, before) {
  const old = sections(document).find((one) => nameOf(one) === nameOf(section));
  const fresh = document.importNode(section, true);
  const kept = old && settings(old), drawn = old?.querySelector(".chart > *");
  if (old) old.replaceWith(fresh);
  else document.querySelector("main").insertBefore(fresh, before);
  const chart = fresh.querySelector(".chart"), form = fresh.querySelector("form.filters");
  if (form) setUpFilters(form);
  if (chart && drawn) setUpChart(chart);
  else if (chart) observer.observe(chart);
  if (kept) restore(fresh, kept);
  return fresh;
}

function merge(page) {
  const fresh = sections(page), names = fresh.map(nameOf);
  for (const old of sections(document)) if (!names.includes(nameOf(old))) old.remove();
  let before = null;
  for (const section of fresh.reverse()) {
    const name = nameOf(section), text = section.outerHTML;
    const here = sections(document).find((one) => nameOf(one) === name);
    before = here && known.get(name) === text ? here : place(section, before);
    known.set(name, text);
  }
}

let version = document.querySelector("#live").dataset.version;

async function ask() {
  const state = document.querySelector("#live [role=status]");
  try {
    const latest = await (await fetch("version", { cache: "no-store" })).text();
    if (latest !== version) {
      const answer = await fetch("./", { cache: "no-store" });
      if (answer.ok) {
        merge(new DOMParser().parseFromString(await answer.text(), "text/html"));
        version = latest;
      }
    }
  } catch {
    if (state) state.textContent = "The server has stopped; this is what it showed last.";
  }
  setTimeout(ask, EVERY);
}

setTimeout(ask, EVERY);
