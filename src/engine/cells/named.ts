/** Lists of texts that a batch contains once and refers to by position. */

/** A list that holds each text of a batch once. Positions are counted from 1. */
export class Named {
  buffer = Buffer.allocUnsafe(4096);
  length = 0;
  count = 0;

  begin(itemsMax: number, itemBytesMax: number): void {
    this.length = 0;
    this.count = 0;
    if (this.buffer.length < itemsMax * itemBytesMax)
      this.buffer = Buffer.allocUnsafe(2 * itemsMax * itemBytesMax);
  }
}

/**
 * Positions by text. The map is created only for the second text, because in a batch of many partners most
 * partners have a single spin.
 */
export class Places {
  #firstText: string | undefined;
  #firstPlace = 0;
  #others: Map<string, number> | undefined;

  get(text: string): number | undefined {
    return text === this.#firstText ? this.#firstPlace : this.#others?.get(text);
  }

  set(text: string, place: number): void {
    if (this.#firstText === undefined) {
      this.#firstText = text;
      this.#firstPlace = place;
      return;
    }
    this.#others ??= new Map();
    this.#others.set(text, place);
  }
}
