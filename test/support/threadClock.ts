import { WASI } from 'node:wasi'

/** CLOCK_THREAD_CPUTIME_ID of WASI. */
const THREAD_CPU_TIME = 3

const text = (value: string): number[] => [value.length, ...Buffer.from(value)]
const section = (id: number, ...content: number[]): number[] => [id, content.length, ...content]

const PREAMBLE = [0, ...Buffer.from('asm'), 1, 0, 0, 0]

/** Exports a memory, and the clock of WASI as `read(clock: i32, precision: i64, address: i32): i32`. */
const MODULE = Uint8Array.from([
  ...PREAMBLE,
  ...section(1, 1, 0x60, 3, 0x7f, 0x7e, 0x7f, 1, 0x7f),
  ...section(2, 1, ...text('wasi_snapshot_preview1'), ...text('clock_time_get'), 0, 0),
  ...section(5, 1, 0, 1),
  ...section(7, 2, ...text('memory'), 2, 0, ...text('read'), 0, 0),
])

interface Clocks {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly read: (clock: number, precision: bigint, address: number) => number
}

/** The types of Node have no values of WebAssembly. */
const { Instance, Module } = (
  globalThis as unknown as {
    readonly WebAssembly: {
      readonly Module: new (bytes: Uint8Array) => object
      readonly Instance: new (module: object, imports: object) => { readonly exports: Clocks }
    }
  }
).WebAssembly

/**
 * A clock of the processor time of this thread, milliseconds. A look takes a microsecond. `process.threadCpuUsage` is not used:
 * Linux counts for it at each tick of the scheduler, so a part of a turn may appear to take no time or 4 ms.
 */
export const threadClock = (): (() => number) => {
  const wasi = new WASI({ version: 'preview1' })
  const instance = new Instance(new Module(MODULE), wasi.getImportObject())
  wasi.initialize(instance)
  const { memory, read } = instance.exports
  const view = new DataView(memory.buffer)
  return () => {
    const error = read(THREAD_CPU_TIME, 1n, 0)
    if (error !== 0) throw new Error(`Expected the processor time of the thread, got WASI error ${error}`)
    return Number(view.getBigUint64(0, true)) / 1e6
  }
}
