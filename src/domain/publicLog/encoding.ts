/** Strict parsers of encoded bytes and numbers. They accept only the canonical form of a value. */

/**
 * Parses lowercase hexadecimal of a given length.
 * @returns undefined if the text is anything else
 */
export function fromHex(text: string, bytes: number): Buffer | undefined {
  return text.length === 2 * bytes && /^[0-9a-f]*$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

/**
 * Parses base64 (RFC 4648 section 4) with padding and with unused bits zero.
 * @returns undefined if the text is anything else
 */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

/**
 * Parses an integer without leading zeros, up to 2^53 - 1.
 * @returns undefined if the text is anything else
 */
export function fromDecimal(text: string): number | undefined {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : undefined;
}
