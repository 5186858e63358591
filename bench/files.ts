import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import type { Figure } from './figure.ts'
import { BenchServer } from './server.ts'

const MB = 1 << 20
const BYTES = 300 * MB
const ROUNDS = 3
/** `BENCH_PARTS_GB=5` adds an upload in parts of that many gigabytes, which writes twice as many. */
const PARTS_GB = Number(process.env['BENCH_PARTS_GB'] ?? 0)

const chunk = Buffer.alloc(MB, 'a file that is uploaded')

/** Megabytes per second of the disk itself: one file, written megabyte by megabyte and synced. */
const writeAlone = async (dir: string): Promise<number> => {
  const path = join(dir, 'alone')
  const began = performance.now()
  const file = await open(path, 'w')
  for (let written = 0; written < BYTES; written += MB) await file.write(chunk)
  await file.sync()
  await file.close()
  const perSecond = BYTES / MB / ((performance.now() - began) / 1000)
  await rm(path)
  return perSecond
}

/** Sends a body of the given size; resolves with the seconds until the reply. */
const put = (server: BenchServer, path: string, bytes: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const sent = request(`${server.url}/v1/files/${path}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${server.key}`, 'Content-Length': bytes },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      response.on('end', () => {
        if (response.statusCode === 200) resolve((performance.now() - began) / 1000)
        else reject(new Error(`PUT ${path} answered ${response.statusCode}`))
      })
    })
    let left = bytes
    const write = (): void => {
      while (left > 0) {
        const size = Math.min(left, MB)
        left -= size
        if (!sent.write(chunk.subarray(0, size))) return void sent.once('drain', write)
      }
      sent.end()
    }
    write()
  })

/** The peak of resident megabytes; Linux only. */
const peakOf = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

const uploadParts = async (server: BenchServer, bytes: number): Promise<number> => {
  const began = performance.now()
  const { upload_id, part_size, parts_expected } = await server.api<{
    upload_id: string
    part_size: number
    parts_expected: number
  }>('POST', '/files/uploads', { path: 'parts', expected_size: bytes })
  for (let part = 1; part <= parts_expected; part++) {
    await put(server, `uploads/${upload_id}/${part}`, Math.min(part_size, bytes - (part - 1) * part_size))
  }
  await server.api('POST', `/files/uploads/${upload_id}/complete`)
  return (performance.now() - began) / 1000
}

/** A file of 300 MB in one request, and the disk alone, alternating on one disk; the best of each. */
export const files = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  try {
    const pid = server.process.pid ?? 0
    const idle = peakOf(pid)
    let alone = 0
    let uploaded = 0
    let cpuMs = Infinity
    for (let round = 0; round < ROUNDS; round++) {
      alone = Math.max(alone, await writeAlone(server.dir))
      const cpu = server.cpuMs()
      const perSecond = BYTES / MB / (await put(server, 'upload/bench', BYTES))
      cpuMs = Math.min(cpuMs, server.cpuMs() - cpu)
      uploaded = Math.max(uploaded, perSecond)
    }
    const hashing = performance.now()
    createHash('sha256')
      .update(Buffer.alloc(100 * MB))
      .digest()
    const hashed = 100 / ((performance.now() - hashing) / 1000)
    const figures: Figure[] = [
      { what: 'the disk alone, 300 MB and a sync', value: alone, unit: 'MB/s' },
      { what: 'upload of 300 MB in one request', value: uploaded, unit: 'MB/s', atLeast: alone / 2 },
      { what: '  CPU time of the server for it', value: cpuMs, unit: 'ms' },
      { what: '  SHA-256 alone, for comparison', value: hashed, unit: 'MB/s' },
      { what: '  server resident at most, before', value: idle, unit: 'MB' },
      { what: '  server resident at most, after', value: peakOf(pid), unit: 'MB', atMost: 200 },
    ]
    if (PARTS_GB === 0) return figures
    const bytes = PARTS_GB * 1024 * MB
    const seconds = await uploadParts(server, bytes)
    return [
      ...figures,
      { what: `upload of ${PARTS_GB} GB in parts`, value: bytes / MB / seconds, unit: 'MB/s' },
      { what: '  server resident at most, after', value: peakOf(pid), unit: 'MB', atMost: 200 },
    ]
  } finally {
    await server.stop()
  }
}
