import * as assert from 'uvu/assert'
import { seccompFilter } from '../../src/sandbox/seccomp.ts'
import { suite } from '../support/suite.ts'

const ALLOWED = 'allowed'
const KILLED = 'killed'

/** Executes the filter as the kernel does. */
const outcomeOf = (filter: Buffer, arch: number, call: number, ...args: readonly number[]): string => {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(call, 0)
  data.writeUInt32LE(arch, 4)
  args.forEach((value, index) => data.writeBigUInt64LE(BigInt(value), 16 + 8 * index))
  let accumulator = 0
  for (let at = 0; at < filter.length / 8; at++) {
    const [code, yes, no] = [filter.readUInt16LE(at * 8), filter[at * 8 + 2] ?? 0, filter[at * 8 + 3] ?? 0]
    const value = filter.readUInt32LE(at * 8 + 4)
    if (code === 0x20) accumulator = data.readUInt32LE(value)
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0
    else if (code === 0x15) at += accumulator === value ? yes : no
    else if (code === 0x35) at += accumulator >= value ? yes : no
    else if (code === 0x06) {
      if (value === 0x7fff_0000) return ALLOWED
      return value === 0x8000_0000 ? KILLED : `error ${value & 0xffff}`
    } else throw new Error(`Expected a known instruction, got ${code}`)
  }
  throw new Error('Expected the program to end with a return')
}

const architectures = {
  x64: { audit: 0xc000_003e, read: 0, mmap: 9, clone: 56, clone3: 435, socket: 41, ioctl: 16 },
  arm64: { audit: 0xc000_00b7, read: 63, mmap: 222, clone: 220, clone3: 435, socket: 198, ioctl: 29 },
}
const denied = {
  x64: {
    ptrace: 101,
    mount: 165,
    unshare: 272,
    fork: 57,
    vfork: 58,
    bpf: 321,
    keyctl: 250,
    io_uring_setup: 425,
  },
  arm64: { ptrace: 117, mount: 40, unshare: 97, setns: 268, bpf: 280, keyctl: 219, io_uring_setup: 425 },
}

const EPERM = 'error 1'
const ENOSYS = 'error 38'
const EAFNOSUPPORT = 'error 97'

const THREAD = 0x3d_0f00 // the flags of glibc for a thread
const CLONE_NEWUSER = 0x1000_0000
const CLONE_NEWNET = 0x4000_0000

for (const name of ['x64', 'arm64'] as const) {
  const filter = suite(`the filter of system calls on ${name}`)
  const program = seccompFilter(name) ?? Buffer.alloc(0)
  const { audit, read, mmap, clone, clone3, socket, ioctl } = architectures[name]
  const outcome = (call: number, ...args: readonly number[]) => outcomeOf(program, audit, call, ...args)

  filter('allows what Node needs', () => {
    for (const call of [read, mmap]) assert.is(outcome(call), ALLOWED)
    assert.is(outcome(clone, THREAD), ALLOWED)
    assert.is(outcome(socket, 1), ALLOWED)
    assert.is(outcome(ioctl, 0, 0x5421), ALLOWED)
  })

  filter('denies tracing, mounts, namespaces, keys, BPF and io_uring', () => {
    for (const [call, number] of Object.entries(denied[name])) assert.is(outcome(number), EPERM, call)
  })

  filter('denies processes and namespaces by clone', () => {
    assert.is(outcome(clone, 17), EPERM) // fork: SIGCHLD
    assert.is(outcome(clone, CLONE_NEWUSER | 17), EPERM)
    assert.is(outcome(clone, THREAD | CLONE_NEWNET), EPERM)
    assert.is(outcome(clone3), ENOSYS)
  })

  filter('denies sockets of all families but unix', () => {
    for (const family of [2, 10, 16, 17, 38, 40])
      assert.is(outcome(socket, family), EAFNOSUPPORT, String(family))
  })

  filter('denies input for another terminal', () => assert.is(outcome(ioctl, 0, 0x5412), EPERM))

  filter('answers newer calls as unknown', () => assert.is(outcome(600), ENOSYS))

  filter('kills a process that uses another architecture or ABI', () => {
    assert.is(outcomeOf(program, 0x4000_0003, read), KILLED)
    assert.is(outcome(0x4000_0000 + read), KILLED)
  })

  filter.run()
}

const other = suite('the filter of system calls on other architectures')
other('does not exist', () => assert.is(seccompFilter('riscv64'), null))
other.run()
