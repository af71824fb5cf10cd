/** Lists that come in pages, as iterators: `for await (const spin of client.playerSpins('alice'))`. */

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly total: number;
}

const PAGE_SIZE = 100;

/**
 * All items of a list that is asked for by page number. Where items are added in front meanwhile, the rest moves on: what was
 * on the page before is left out.
 * @param idOf tells items apart
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
  /** Null at the end. */
  readonly nextCursor: Cursor | null;
}

/** All items of a list that is asked for by cursor. @param from cursor to begin after */
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
