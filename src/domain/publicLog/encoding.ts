/** Strict readers of texts that stand for bytes: what has two spellings is refused in all but one. */

/** @returns undefined where it is not lowercase hexadecimal of so many bytes */
export function fromHex(text: string, bytes: number): Buffer | undefined {
  return text.length === 2 * bytes && /^[0-9a-f]*$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

/** RFC 4648 section 4 with padding, its unused bits zero. @returns undefined where it is not that */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** A whole number without leading zeros, up to 2^53 - 1. @returns undefined where it is not that */
export function fromDecimal(text: string): number | undefined {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : undefined;
}
