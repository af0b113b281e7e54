// Dawn asks at every turn of node's loop whether what it waits for is done, and keeps a core busy for as long as another one
// compiles or sorts. To ask every few milliseconds is enough.
globalThis.setImmediate = (then, ...given) => setTimeout(then, 4, ...given);
