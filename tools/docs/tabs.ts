/**
 * Renders the same example in several languages as tabs. Without the script, each language is shown under its
 * name.
 */
import { escaped } from './pages.js';

export interface Tab {
  readonly label: string;
  readonly html: string;
}

export const tabsOf = (tabs: readonly Tab[]): string =>
  `<div class="tabs">${tabs
    .map(
      ({ label, html }) =>
        `<div data-tab="${escaped(label)}"><p class="tab-name">${escaped(label)}</p>${html}</div>`,
    )
    .join('')}</div>\n`;
