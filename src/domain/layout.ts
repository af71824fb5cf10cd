/**
 * Defines packed records: their members, the offsets of the members, and how they are read and written, in
 * little endian. The layouts themselves are in layouts.ts, from which `npm run layouts` generates the format
 * strings of the Lua scripts.
 */

export interface Member<T> {
  readonly bytes: number;
  /** Format of the member in the notation of Lua's struct library. */
  readonly lua: string;
  /** Name of the member's type in the documentation. */
  readonly type: string;
  read(buffer: Buffer, at: number): T;
  write(buffer: Buffer, at: number, value: T): void;
}

type Members = Readonly<Record<string, Member<never> | Member<unknown>>>;
type ValueOf<M> = M extends Member<infer T> ? T : never;
export type ValuesOf<M> = { readonly [K in keyof M]: ValueOf<M[K]> };

export interface Layout<M extends Members> {
  readonly members: M;
  readonly bytes: number;
  /** Offset of each member in the record, in bytes. */
  readonly at: { readonly [K in keyof M]: number };
  read(buffer: Buffer, at?: number): ValuesOf<M>;
  write(buffer: Buffer, at: number, values: ValuesOf<M>): void;
  /** Creates a new buffer with the record. */
  make(values: ValuesOf<M>): Buffer;
}

export type RecordOf<L> = L extends Layout<infer M> ? ValuesOf<M> : never;

export function layout<M extends Members>(members: M): Layout<M> {
  let bytes = 0;
  const at: Record<string, number> = {};
  for (const [name, member] of Object.entries(members)) {
    at[name] = bytes;
    bytes += member.bytes;
  }
  const each = Object.entries(members) as [string, Member<unknown>][];
  const write = (buffer: Buffer, from: number, values: ValuesOf<M>): void => {
    for (const [name, member] of each) member.write(buffer, from + at[name]!, values[name]);
  };
  return {
    members,
    bytes,
    at: at as Layout<M>['at'],
    read: (buffer, from = 0) => {
      const values: Record<string, unknown> = {};
      for (const [name, member] of each) values[name] = member.read(buffer, from + at[name]!);
      return values as ValuesOf<M>;
    },
    write,
    make: (values) => {
      const buffer = Buffer.alloc(bytes);
      write(buffer, 0, values);
      return buffer;
    },
  };
}

const unsigned = (bytes: 1 | 2 | 4 | 6, lua: string): Member<number> => ({
  bytes,
  lua,
  type: `u${bytes * 8}`,
  read: (buffer, at) => buffer.readUIntLE(at, bytes),
  write: (buffer, at, value) => {
    buffer.writeUIntLE(value, at, bytes);
  },
});

export const u8 = unsigned(1, 'B');
export const u16 = unsigned(2, 'I2');
export const u32 = unsigned(4, 'I4');
export const u48 = unsigned(6, 'I6');

/** A signed 64-bit integer within the range of safe integers, for whole micro-USD. */
export const money: Member<number> = {
  bytes: 8,
  lua: 'i8',
  type: 'i64',
  read: readSafeInt64,
  write: writeSafeInt64,
};

/** Record member for a signed 64-bit integer of any size. */
export const i64: Member<bigint> = {
  bytes: 8,
  lua: 'i8',
  type: 'i64',
  read: (buffer, at) => buffer.readBigInt64LE(at),
  write: (buffer, at, value) => {
    buffer.writeBigInt64LE(value, at);
  },
};

const idAs = (lua: string, type: string): Member<bigint> => ({
  bytes: 8,
  lua,
  type,
  read: readId,
  write: (buffer, at, value) => {
    buffer.writeBigUInt64LE(value, at);
  },
});

/**
 * Id of a ledger entry. Lua reads it as two numbers, low and high, because a double does not hold 64 bits.
 */
export const id = idAs('I4I4', 'u64');
/** Id of a ledger entry that a script copies without unpacking it. */
export const packedId = idAs('c8', 'u64');

/** Record member for a fixed number of raw bytes. */
export const bytes = (count: number): Member<Buffer> => ({
  bytes: count,
  lua: `c${count}`,
  type: `${count} bytes`,
  read: (buffer, at) => buffer.subarray(at, at + count),
  write: (buffer, at, value) => {
    value.copy(buffer, at);
  },
});

/** A record nested in another record. A script copies the nested record without unpacking it. */
export const nested = <M extends Members>(inner: Layout<M>, name: string): Member<ValuesOf<M>> => ({
  bytes: inner.bytes,
  lua: `c${inner.bytes}`,
  type: name,
  read: (buffer, at) => inner.read(buffer, at),
  write: (buffer, at, value) => inner.write(buffer, at, value),
});

const length = (of: Member<number>, lua: string): Member<number> => ({
  ...of,
  lua,
  type: `${of.type} (length, followed by that many bytes)`,
});

/**
 * Length of a text that follows the record. It must be the last member, because Lua's struct library returns
 * the text as an additional value.
 */
export const text8 = length(u8, 'Bc0');
export const text16 = length(u16, 'I2c0');

/** Reads a signed 64-bit little-endian integer, which must be a safe integer. */
export function readSafeInt64(buffer: Buffer, at: number): number {
  return buffer.readInt32LE(at + 4) * 4_294_967_296 + buffer.readUInt32LE(at);
}

/**
 * Writes a signed 64-bit little-endian integer.
 * @param value a safe integer, which may be negative
 */
export function writeSafeInt64(buffer: Buffer, at: number, value: number): void {
  const high = Math.floor(value / 4_294_967_296);
  buffer.writeUInt32LE(value - high * 4_294_967_296, at);
  buffer.writeInt32LE(high, at + 4);
}

export function readId(buffer: Buffer, at: number): bigint {
  return buffer.readBigUInt64LE(at);
}
