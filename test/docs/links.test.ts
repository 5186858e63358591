import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'

const pages = ['README.md', 'infra/README.md', ...globSync('docs/**/*.md'), ...globSync('examples/**/*.md')]

const withoutCode = (page: string): string => readFileSync(page, 'utf8').replaceAll(/^ *```.*?^ *```$/gms, '')

/** The anchors of the headings, as GitHub makes them. */
const anchorsOf = (page: string): string[] =>
  [...withoutCode(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  )

const isBroken = (page: string, target: string): boolean => {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : join(dirname(page), path)
  if (!existsSync(file)) return true
  return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).includes(anchor)
}

const links = suite('the links of the documentation')

links('lead to files that exist, and to headings that they have', () => {
  assert.ok(pages.length > 20)
  const broken = pages.flatMap((page) =>
    [...withoutCode(page).matchAll(/\]\(([^)\s:]+)\)/g)]
      .filter(([, target = '']) => isBroken(page, target))
      .map(([, target]) => `${page}: ${target}`),
  )
  assert.equal(broken, [])
})

links.run()
