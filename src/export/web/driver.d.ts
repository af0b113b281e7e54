/** A buffer, or a part of one at an offset of whole words. */
export type Memory = GPUBuffer | GPUBufferBinding;
type Memories = Record<string, Memory | undefined>;

/** Everything ready to run one schedule for one length, any number of times. */
export class Plan<Given extends object = Memories> {
  private constructor();
  /** Records all launches into an encoder of the caller's. Nothing is read back, and nothing waits. */
  encode(encoder: GPUCommandEncoder, given: Given): void;
  /** Gives the memory back that is the plan's own; what was submitted still runs. */
  destroy(): void;
}
