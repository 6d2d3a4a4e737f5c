/** Takes numbers off the front of some bytes, as the core wrote them (LEB128). */
export class Bytes {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new Error("the report's data ends too early");
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  text(length: number): string {
    const piece = this.bytes.subarray(this.at, (this.at += length));
    return new TextDecoder().decode(piece);
  }
}

/** Undoes base64 and raw deflate. */
export async function unpack(base64: string): Promise<Uint8Array> {
  const packed = fromBase64(base64);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export function fromBase64(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
