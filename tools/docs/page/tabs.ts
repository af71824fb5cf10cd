/**
 * Tabs with the same example in several languages. A selected language applies to all tabs and to other
 * pages.
 */

const KEPT = 'spindle-docs-language';

/** Functions that select the tab with a given label, one for each group. */
const groups: ((label: string) => void)[] = [];

function kept(): string | null {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function choose(label: string): void {
  for (const show of groups) show(label);
  try {
    localStorage.setItem(KEPT, label);
  } catch {
    // The browser does not allow local storage, so the selected language is not saved.
  }
}

function openGroup(group: HTMLElement, number: number): void {
  const panels = [...group.querySelectorAll<HTMLElement>(':scope > [data-tab]')];
  const list = document.createElement('div');
  list.setAttribute('role', 'tablist');
  list.setAttribute('aria-label', 'Language');
  const tabs = panels.map((panel, place) => {
    const tab = document.createElement('button');
    tab.type = 'button';
    tab.textContent = panel.dataset.tab!;
    tab.id = `tab-${number}-${place}`;
    panel.id = `panel-${number}-${place}`;
    tab.setAttribute('role', 'tab');
    tab.setAttribute('aria-controls', panel.id);
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', tab.id);
    tab.addEventListener('click', () => {
      // Other groups of tabs above may change their height, so the page scrolls to keep the clicked tab under
      // the pointer.
      const top = tab.getBoundingClientRect().top;
      choose(panel.dataset.tab!);
      scrollBy(0, tab.getBoundingClientRect().top - top);
    });
    list.append(tab);
    return tab;
  });
  list.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = tabs.indexOf(document.activeElement as HTMLButtonElement);
    if (step === undefined || at < 0) return;
    const next = tabs[(at + step + tabs.length) % tabs.length]!;
    next.focus();
    next.click();
  });
  const show = (label: string): void => {
    if (!panels.some((panel) => panel.dataset.tab === label)) return;
    for (const [place, panel] of panels.entries()) {
      const isShown = panel.dataset.tab === label;
      panel.hidden = !isShown;
      tabs[place]!.setAttribute('aria-selected', String(isShown));
      tabs[place]!.tabIndex = isShown ? 0 : -1;
    }
  };
  group.prepend(list);
  show(panels[0]!.dataset.tab!);
  groups.push(show);
}

export function openTabs(): void {
  for (const [number, group] of document.querySelectorAll<HTMLElement>('.tabs').entries())
    openGroup(group, number);
  const label = kept();
  if (label !== null) for (const show of groups) show(label);
}
