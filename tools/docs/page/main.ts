/**
 * The script of every page of /docs: service address in examples, copy buttons, tabs, links to headings,
 * menu, search, and "Try it".
 */
import { openSearch } from './search.js';
import { openTabs } from './tabs.js';
import { openTries } from './tryIt.js';

document.documentElement.classList.add('js');
for (const place of document.querySelectorAll('.origin')) place.textContent = location.origin;

/** Time for which a button shows its result after a click, in ms. */
const SHOWN_MS = 2000;

function openCopy(): void {
  for (const block of document.querySelectorAll<HTMLElement>('main pre')) {
    const box = document.createElement('div');
    box.className = 'code';
    block.replaceWith(box);
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      const text = (block.textContent ?? '').replace(/\n$/, '');
      let isCopied = true;
      // Browsers provide the clipboard API only on secure addresses (HTTPS or localhost).
      if (navigator.clipboard) await navigator.clipboard.writeText(text).catch(() => (isCopied = false));
      else isCopied = copiedBySelection(block);
      button.textContent = isCopied ? 'Copied' : 'Select and copy';
      setTimeout(() => (button.textContent = 'Copy'), SHOWN_MS);
    });
    box.append(block, button);
  }
}

function copiedBySelection(block: HTMLElement): boolean {
  getSelection()?.selectAllChildren(block);
  return document.execCommand('copy');
}

function openAnchors(): void {
  for (const heading of document.querySelectorAll<HTMLElement>('main h2[id], main h3[id]')) {
    const link = document.createElement('a');
    link.className = 'anchor';
    link.href = `#${heading.id}`;
    link.setAttribute('aria-label', `Link to ${heading.textContent?.trim()}`);
    link.textContent = '#';
    heading.append(link);
  }
}

function openMenu(): void {
  const button = document.querySelector<HTMLButtonElement>('#site-menu')!;
  const pages = document.querySelector('#site-pages')!;
  button.hidden = false;
  const show = (isOpen: boolean): void => {
    button.setAttribute('aria-expanded', String(isOpen));
    pages.classList.toggle('open', isOpen);
  };
  button.addEventListener('click', () => show(button.getAttribute('aria-expanded') !== 'true'));
  pages.addEventListener('click', (event) => {
    if ((event.target as Element).closest('a')) show(false);
  });
  // Scrolls the sidebar to the entry of the current page.
  const current = pages.querySelector<HTMLElement>('[aria-current]');
  if (current && current.offsetTop > pages.clientHeight) pages.scrollTop = current.offsetTop - 80;
}

openCopy();
openTabs();
openAnchors();
openMenu();
openSearch(document.querySelector('#site-search')!);
openTries();
// The script has inserted elements, which moved the section that the URL names, so the page scrolls to this
// section again.
if (location.hash.length > 1)
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
