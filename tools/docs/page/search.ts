/** The search field. It loads the index on first use. Typed text never leaves the page. */
import type { SearchIndex } from '../searchIndex.js';
import { Finder, type Found } from './find.js';

const INDEX = '/docs/search.json';

export function openSearch(box: Element): void {
  const input = document.createElement('input');
  input.type = 'search';
  input.placeholder = 'Search (press /)';
  input.autocomplete = 'off';
  const list = document.createElement('div');
  list.id = 'site-found';
  list.hidden = true;
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Found');
  const attributes = { role: 'combobox', 'aria-label': 'Search the documentation', 'aria-controls': list.id };
  for (const [name, value] of Object.entries({
    ...attributes,
    'aria-expanded': 'false',
    'aria-autocomplete': 'list',
  }))
    input.setAttribute(name, value);
  box.append(input, list);

  let finder: Promise<Finder> | undefined;
  const load = async (): Promise<Finder> => {
    const response = await fetch(INDEX);
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return new Finder((await response.json()) as SearchIndex);
  };
  let chosen = -1;
  const hide = (): void => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const mark = (place: number): void => {
    const options = [...list.querySelectorAll<HTMLElement>('[role=option]')];
    if (options.length === 0) return;
    chosen = (place + options.length) % options.length;
    for (const [at, option] of options.entries()) option.setAttribute('aria-selected', String(at === chosen));
    input.setAttribute('aria-activedescendant', options[chosen]!.id);
    options[chosen]!.scrollIntoView({ block: 'nearest' });
  };
  const show = (found: readonly Found[], text: string): void => {
    list.replaceChildren(...(found.length === 0 ? [nothing(text)] : found.map(option)));
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    mark(0);
  };
  const search = async (): Promise<void> => {
    const text = input.value;
    if (text.trim() === '') return hide();
    try {
      finder ??= load();
      const found = (await finder).find(text);
      // The text in the search field may have changed while the index was loaded.
      if (text === input.value) show(found, text);
    } catch {
      finder = undefined;
      show([], text);
    }
  };
  input.addEventListener('input', () => void search());
  input.addEventListener('focus', () => void search());
  input.addEventListener('blur', () => setTimeout(hide, 200));
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') mark(chosen + 1);
    else if (event.key === 'ArrowUp') mark(chosen - 1);
    else if (event.key === 'Enter') list.querySelectorAll('a')[Math.max(chosen, 0)]?.click();
    else if (event.key === 'Escape') hide();
    else return;
    event.preventDefault();
  });
  document.addEventListener('keydown', (event) => {
    const isTyping = (event.target as Element).matches('input, textarea, select');
    const isAsked =
      (event.key === '/' && !isTyping) || (event.key === 'k' && (event.ctrlKey || event.metaKey));
    if (!isAsked) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}

function option({ href, page, heading }: Found, place: number): HTMLElement {
  const link = document.createElement('a');
  link.id = `site-found-${place}`;
  link.setAttribute('role', 'option');
  link.href = href;
  link.tabIndex = -1;
  const where = document.createElement('small');
  where.textContent = page;
  link.append(heading, ' ', where);
  return link;
}

function nothing(text: string): HTMLElement {
  const item = document.createElement('div');
  item.id = 'site-found-0';
  item.setAttribute('role', 'option');
  item.textContent = `Nothing has «${text}»`;
  return item;
}
