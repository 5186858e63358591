import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createAuthority } from './certificates.ts'
import { openRecursor } from './dnsServer.ts'
import { hasEnded } from './hasEnded.ts'
import { reportExercised, reportMissing } from './engines.ts'
import { freePort } from './freePort.ts'
import { tempDir } from './tempDir.ts'
import { until } from './until.ts'

const PROGRAMS = ['pebble', 'pebble-challtestsrv'] as const

const isInstalled = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((dir) => existsSync(join(dir, program)))

/**
 * Whether pebble is here: a real ACME server, with a real DNS server. Without it, the caller skips its tests, and the run reports
 * this at its end. `SVC_TEST_ACME=required`: the tests run, and fail.
 */
export const hasPebble = (): boolean => {
  if (PROGRAMS.every(isInstalled)) {
    reportExercised('ACME (pebble)')
    return true
  }
  reportMissing('ACME: the programs pebble and pebble-challtestsrv (Debian: apt-get install pebble)')
  return process.env['SVC_TEST_ACME'] === 'required'
}

const running = new Set<ChildProcess>()
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')))

interface Options {
  /** The zone that `nameserver` serves. */
  readonly zone: string
  /** The address of the name server of the service, which may not have started yet. */
  readonly nameserver: () => string
  readonly certificateSeconds?: number
  /** Names for which it refuses certificates. */
  readonly refused?: readonly string[]
}

/** Starts a certificate authority and the DNS that it trusts, on loopback. */
export const startPebble = async ({
  zone,
  nameserver,
  certificateSeconds = 86_400,
  refused = [],
}: Options) => {
  const dir = tempDir()
  const [dnsPort, dnsManagement, port, management] = await Promise.all([
    freePort(),
    freePort(),
    freePort(),
    freePort(),
  ])
  const output: string[] = []
  const launch = (program: string, args: readonly string[]): ChildProcess => {
    const env = { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '5' }
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    running.add(child)
    for (const pipe of [child.stdout, child.stderr])
      pipe.setEncoding('utf8').on('data', (line: string) => output.push(line))
    child.on('exit', () => running.delete(child))
    return child
  }
  const none = ['-http01', '', '-https01', '', '-tlsalpn01', '']
  const dnsArgs = ['-dns01', `127.0.0.1:${dnsPort}`, '-management', `127.0.0.1:${dnsManagement}`]
  const dns = launch('pebble-challtestsrv', [...dnsArgs, ...none, '-defaultIPv6', '', '-defaultIPv4', ''])
  const recursor = await openRecursor(`127.0.0.1:${dnsPort}`, { zone, delegate: nameserver })

  const authority = createAuthority()
  const own = authority.issue('IP:127.0.0.1', 'DNS:localhost')
  writeFileSync(join(dir, 'cert.pem'), own.cert)
  writeFileSync(join(dir, 'key.pem'), own.key)
  const config = {
    pebble: {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: join(dir, 'cert.pem'),
      privateKey: join(dir, 'key.pem'),
      httpPort: 1,
      tlsPort: 1,
      ocspResponderURL: '',
      externalAccountBindingRequired: false,
      certificateValidityPeriod: certificateSeconds,
      domainBlocklist: refused,
    },
  }
  writeFileSync(join(dir, 'config.json'), JSON.stringify(config))
  const pebble = launch('pebble', ['-config', join(dir, 'config.json'), '-dnsserver', recursor.address])

  const agent = new Agent({ ca: readFileSync(authority.file) })
  const managed = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const asked = request(`https://127.0.0.1:${management}${path}`, { agent }, (reply) => {
        text(reply).then(resolve, reject)
      })
      asked.on('error', reject).end()
    })
  const setDns = async (path: string, body: object): Promise<void> => {
    const url = `http://127.0.0.1:${dnsManagement}/${path}`
    const { status } = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
    if (status !== 200) throw new Error(`Expected the DNS server to accept ${path}, got ${status}`)
  }
  const isUp = async (work: () => Promise<unknown>) => {
    const dead = [dns, pebble].find(hasEnded)
    if (dead) throw new Error(`Expected ${dead.spawnfile} to start, got: ${output.join('')}`)
    return work().then(
      () => true,
      () => false,
    )
  }
  await until(() => isUp(() => setDns('clear-cname', { host: 'ready.example' })))
  await until(() => isUp(() => managed('/roots/0')))

  return {
    directoryUrl: `https://127.0.0.1:${port}/dir`,
    /** The file with the root of its own TLS. */
    caFile: authority.file,
    /** The address of the resolver that sees the records below and the delegated zone. */
    resolver: recursor.address,
    /** The root of the certificates that it issues, PEM. */
    root: () => managed('/roots/0'),
    /** The status of a certificate by its serial number: `Valid` or `Revoked`. */
    statusOf: async (serial: string): Promise<string> => {
      const found: unknown = JSON.parse(await managed(`/cert-status-by-serial/${serial.toLowerCase()}`))
      return (found as { Status: string }).Status
    },
    setCname: (host: string, target: string) => setDns('set-cname', { host, target }),
    clearCname: (host: string) => setDns('clear-cname', { host }),
    output,
    stop: async (): Promise<void> => {
      const ended = [dns, pebble].flatMap((child) => (running.has(child) ? [once(child, 'exit')] : []))
      for (const child of [dns, pebble]) child.kill('SIGKILL')
      await Promise.all(ended)
      await recursor.stop()
      agent.destroy()
    },
  }
}
