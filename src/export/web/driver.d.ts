/** A buffer, or a part of one at an offset of whole words. */
export type Memory = GPUBuffer | GPUBufferBinding;
type Memories = Record<string, Memory | undefined>;

/** Everything ready to run one schedule for one length, any number of times. */
export class Plan<Given extends object = Memories> {
  private constructor();
  /**
   * Records all launches into an encoder of the caller's. Nothing is read back, and nothing waits. Where `afterEach` is
   * given, each launch has a pass of its own, and it may record between them, such as a copy of what there is so far.
   */
  encode(
    encoder: GPUCommandEncoder,
    given: Given,
    afterEach?: (encoder: GPUCommandEncoder, launch: number) => void,
  ): void;
  /** Gives the memory back that is the plan's own; what was submitted still runs. */
  destroy(): void;
}
