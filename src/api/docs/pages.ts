import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../errors.ts'
import { packageDir } from '../../package/built.ts'

/** A page of the documentation as Markdown. */
export interface Page {
  /** Below `/docs/`, such as `guides/webhooks.md`. */
  readonly path: string
  readonly title: string
  /** The first paragraph. */
  readonly summary: string
  readonly text: string
}

/** The pages for users, in the order of a reader; those for contributors are in the repository only. */
const PAGES = [
  'functions.md',
  'cli.md',
  'dashboard.md',
  'api.md',
  'mcp.md',
  'testing.md',
  'guarantees.md',
  'operations.md',
  'security.md',
  'scaling.md',
  'engines.md',
  'glossary.md',
]
const GUIDES = 'guides'

const docsDir = join(packageDir, 'docs')

let pages: Promise<readonly Page[]> | undefined

/** The pages, read once. */
export const readPages = (): Promise<readonly Page[]> => {
  pages ??= allPages().catch((error: unknown) => {
    pages = undefined
    throw error
  })
  return pages
}

const allPages = async (): Promise<readonly Page[]> => {
  const guides = (await readdir(join(docsDir, GUIDES))).filter((name) => name.endsWith('.md')).sort()
  return Promise.all([...guides.map((name) => `${GUIDES}/${name}`), ...PAGES].map(readPage))
}

const readPage = async (path: string): Promise<Page> => {
  const text = await readFile(join(docsDir, path), 'utf8')
  const [, title = path] = /^# (.+)$/m.exec(text) ?? []
  const [, summary = ''] = /^# .+\n\n([^#\n|`-][^\n]*(?:\n[^\n]+)*)/m.exec(text) ?? []
  return { path, title, summary: plain(summary), text }
}

/** A paragraph on one line, with the texts of its links. */
const plain = (paragraph: string): string =>
  paragraph
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim()

/** Returns a page. Rejects with `not_found` for any other path. */
export const pageAt = async (path: string): Promise<Page> => {
  const found = (await readPages()).find((page) => page.path === path)
  if (found) return found
  throw new AppError('not_found', `No page ${JSON.stringify(path.slice(0, 100))}; /llms.txt lists all pages`)
}

/** The pages as a list for models (llmstxt.org). */
export const llmsText = async (baseUrl: string): Promise<string> => {
  const all = await readPages()
  const lines = (wanted: (page: Page) => boolean) =>
    all
      .filter(wanted)
      .map(({ path, title, summary }) => `- [${title}](${baseUrl}/docs/${path}): ${summary}`)
      .join('\n')
  const isGuide = ({ path }: Page): boolean => path.startsWith(GUIDES)
  return [
    '# svc',
    '> A self-hosted service that runs TypeScript functions: started by events, schedules, webhooks and calls.',
    `The API is described by ${baseUrl}/openapi.json. Agents connect to ${baseUrl}/mcp (Model Context Protocol).`,
    `## Guides\n\n${lines(isGuide)}`,
    `## Reference\n\n${lines((page) => !isGuide(page))}`,
  ]
    .join('\n\n')
    .concat('\n')
}
