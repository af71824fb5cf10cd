/** Iterators over paged lists: `for await (const spin of client.playerSpins('alice'))`. */

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly total: number;
}

const PAGE_SIZE = 100;

/**
 * Iterates over all items of a list that is read by page number. If items are added at the front during the
 * iteration, the pages shift. Items that were on the previous page are then skipped.
 *
 * @param idOf returns an id that distinguishes items
 */
export async function* byPage<Item>(
  read: (page: { page: number; limit: number }) => Promise<Page<Item>>,
  idOf: (item: Item) => string | number,
): AsyncGenerator<Item, void, undefined> {
  let before = new Set<string | number>();
  for (let page = 1; ; page++) {
    const { items, total } = await read({ page, limit: PAGE_SIZE });
    for (const item of items) if (!before.has(idOf(item))) yield item;
    if (page * PAGE_SIZE >= total || items.length === 0) return;
    before = new Set(items.map(idOf));
  }
}

export interface CursorPage<Item, Cursor = string> {
  readonly items: readonly Item[];
  /** Cursor that reads the next page; null on the last page. */
  readonly nextCursor: Cursor | null;
}

/**
 * Iterates over all items of a list that is read by cursor.
 *
 * @param from cursor after which the list begins
 */
export async function* byCursor<Item, Cursor = string>(
  read: (cursor: Cursor | undefined) => Promise<CursorPage<Item, Cursor>>,
  from?: Cursor,
): AsyncGenerator<Item, void, undefined> {
  let cursor = from;
  for (;;) {
    const { items, nextCursor } = await read(cursor);
    yield* items;
    if (nextCursor === null) return;
    cursor = nextCursor;
  }
}
