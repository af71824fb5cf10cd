/** Makes tables scrollable, and readable row by row on a phone, where each cell shows its column heading. */

const plain = (html: string): string => html.replaceAll(/<[^>]+>/g, '').trim();
/** Minimum number of columns for the phone layout. Tables with fewer columns fit a phone. */
const CARD_COLUMNS = 3;

/**
 * Adds the column heading to each cell of a table, and puts the table into a scrollable box. The ARIA roles
 * are kept when the style sheet shows rows as blocks.
 */
export const labelledTables = (html: string): string =>
  html.replaceAll(/<table>[\s\S]*?<\/table>/g, (table) => {
    const heads = [...table.matchAll(/<th[^>]*>([\s\S]*?)<\/th>/g)].map(([, head]) => plain(head!));
    if (heads.length < CARD_COLUMNS) return `<div class="wide" tabindex="0">${table}</div>`;
    let column = 0;
    const labelled = table
      .replaceAll(/<tr( [^>]*)?>|<td>/g, (tag, attributes: string | undefined) => {
        if (tag.startsWith('<tr')) {
          column = 0;
          return `<tr role="row"${attributes ?? ''}>`;
        }
        return `<td role="cell" data-label="${heads[column++] ?? ''}">`;
      })
      .replaceAll('<th>', '<th role="columnheader">')
      .replace('<table>', '<table class="cards" role="table">')
      .replace('<thead>', '<thead role="rowgroup">')
      .replace('<tbody>', '<tbody role="rowgroup">');
    return `<div class="wide" tabindex="0">${labelled}</div>`;
  });
