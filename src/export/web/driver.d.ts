/** Float16Array, which not every browser and compiler has; where it is missing, results are bits in a Uint16Array. */
type Halves = typeof globalThis extends { Float16Array: { prototype: infer Known } } ? Known : never;
/** A buffer, or a part of one at an offset that is a multiple of 4 bytes. */
export type Memory = GPUBuffer | GPUBufferBinding;
type Memories = Record<string, Memory | undefined>;

/** A prepared schedule for one length, to be run any number of times. */
export class Plan<Given extends object = Memories> {
  private constructor();
  /**
   * Records all launches into the caller's encoder; does not submit, read back or wait. With `afterEach` each launch has a
   * compute pass of its own, after which the callback may record, such as a copy of intermediate results.
   */
  encode(
    encoder: GPUCommandEncoder,
    given: Given,
    afterEach?: (encoder: GPUCommandEncoder, launch: number) => void,
  ): void;
  /** Frees the plan's own buffers; submitted work still completes. */
  destroy(): void;
}
