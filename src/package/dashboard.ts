import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import { clock } from '../clock.ts'
import { AppError, messageOf } from '../errors.ts'
import { filesIn, packageDir } from './built.ts'

/** A file of the dashboard as it is sent. */
interface DashboardFile {
  readonly bytes: Buffer
  /** The same bytes, compressed. */
  readonly brotli: Buffer
}

/** The page `index.html`, and `assets/…` by names that change with their content. */
export type Dashboard = ReadonlyMap<string, DashboardFile>

const PAGE = 'index.html'
const SCRIPT = 'main.tsx'
const STYLES = 'styles.css'
const COMPRESSED = '.br'

const compress = promisify(brotliCompress)

/** Bundles the sources of the dashboard. Equal sources give equal files. */
const bundleDashboard = async (src: string): Promise<Dashboard> => {
  const { buildSync } = await import('esbuild') // leaves no process behind, unlike its other functions
  const { outputFiles, metafile } = buildSync({
    absWorkingDir: src,
    entryPoints: [SCRIPT, STYLES].filter((name) => existsSync(join(src, name))),
    outdir: 'assets',
    publicPath: '/ui/assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    charset: 'utf8',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfigRaw: {},
    define: { 'process.env.NODE_ENV': '"production"' },
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  const outputs = Object.entries(metafile.outputs)
  const ofEntry = (entry: string) => outputs.find(([, { entryPoint }]) => entryPoint === entry)
  const script = ofEntry(SCRIPT)
  if (!script) throw new Error(`Expected ${join(src, SCRIPT)}`)
  const { cssBundle } = script[1]
  const isImported = metafile.outputs[cssBundle ?? '']?.inputs[STYLES] !== undefined
  const styles = [cssBundle, isImported ? undefined : ofEntry(STYLES)?.[0]]
  const page = pageOf(
    basename(script[0]),
    styles.flatMap((path) => (path === undefined ? [] : [basename(path)])),
  )
  const files = outputFiles.map(
    ({ path, contents }) => [`assets/${basename(path)}`, Buffer.from(contents)] as const,
  )
  return new Map(
    await Promise.all(
      [[PAGE, Buffer.from(page)] as const, ...files].map(
        async ([path, bytes]) => [path, { bytes, brotli: await compress(bytes) }] as const,
      ),
    ),
  )
}

/** The shell of every page, with what is shown until its script runs. Its policy allows no inline code. */
const pageOf = (script: string, styles: readonly string[]): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>svc</title>
    <link rel="icon" href="${ICON}" />
${styles.map((name) => `    <link rel="stylesheet" href="/ui/assets/${name}" />\n`).join('')}    <script type="module" src="/ui/assets/${script}"></script>
  </head>
  <body>
    <p>Loading… If this remains, reload the page: after an upgrade, its files have other names.</p>
    <noscript>The dashboard needs JavaScript.</noscript>
  </body>
</html>
`

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E' +
  '%3Crect width=%2216%22 height=%2216%22 rx=%224%22 fill=%22%234f46e5%22/%3E' +
  '%3Cpath d=%22M4 8h3l2-3v6l2-3h1%22 fill=%22none%22 stroke=%22%23fff%22 stroke-width=%221.5%22/%3E%3C/svg%3E'

/** Bundles the dashboard of a checkout into a folder. */
export const writeDashboard = async (dir: string, to: string): Promise<void> => {
  for (const [path, { bytes, brotli }] of await bundleDashboard(join(dir, 'src/ui'))) {
    await mkdir(dirname(join(to, path)), { recursive: true })
    await writeFile(join(to, path), bytes)
    await writeFile(join(to, path + COMPRESSED), brotli)
  }
}

/** A look reads the times of all sources, and any client may request the page, so requests share looks. */
const LOOK_EVERY_MS = 1000

/**
 * Returns a function that resolves with the dashboard of a package: the one in its `dist`, or in a checkout whose sources
 * are newer, a new one. It rejects with `unavailable` where neither is possible.
 */
export const openDashboard = (
  dir = packageDir,
  { lookEveryMs = LOOK_EVERY_MS }: { readonly lookEveryMs?: number } = {},
): (() => Promise<Dashboard>) => {
  let current: { readonly newest: number; readonly dashboard: Promise<Dashboard> } | null = null
  let look: { readonly at: number; readonly newest: Promise<number> } | null = null
  const newestNow = (): Promise<number> => {
    const at = clock.monotonic()
    if (!look || at - look.at >= lookEveryMs) look = { at, newest: newestIn(join(dir, 'src/ui')) }
    return look.newest
  }
  return async () => {
    const newest = await newestNow()
    if (current?.newest === newest) return current.dashboard
    const dashboard = dashboardOf(dir, newest)
    current = { newest, dashboard }
    dashboard.catch(() => (current = null)) // it may be built meanwhile
    return dashboard
  }
}

const dashboardOf = async (dir: string, newest: number): Promise<Dashboard> => {
  const built = await stat(join(dir, 'dist/ui', PAGE)).catch(() => null)
  if (built && built.mtimeMs >= newest) return readBuilt(join(dir, 'dist/ui'))
  return bundleDashboard(join(dir, 'src/ui')).catch((cause: unknown) => {
    const fix = 'run npm ci and npm run prepare where the service runs'
    throw new AppError('unavailable', `The dashboard is not built: ${messageOf(cause)}; ${fix}`, { cause })
  })
}

const readBuilt = async (folder: string): Promise<Dashboard> => {
  const paths = (await filesIn(folder)).filter((path) => !path.endsWith(COMPRESSED))
  const files = paths.map(async (path) => {
    const [bytes, brotli] = await Promise.all([readFile(path), readFile(path + COMPRESSED)])
    return [relative(folder, path).split(sep).join('/'), { bytes, brotli }] as const
  })
  return new Map(await Promise.all(files))
}

/** The time of the newest file or folder; 0 for a folder that does not exist. */
const newestIn = async (folder: string): Promise<number> => {
  const names = await readdir(folder, { recursive: true }).catch(() => null)
  if (names === null) return 0
  const times = ['', ...names].map(async (name) => (await stat(join(folder, name))).mtimeMs)
  return Math.max(...(await Promise.all(times)))
}
