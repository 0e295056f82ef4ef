<?xml version="1.0" encoding="UTF-8"?>
<!-- A library's report: books by author (grouped by a key, as XSLT 1.0 must), shelves with sums and means, and every
     note with its words reversed by a recursive template. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="xml" indent="yes" encoding="UTF-8"/>
  <xsl:key name="by-author" match="author" use="concat(first, ' ', last)"/>
  <xsl:key name="by-shelf" match="book" use="@shelf"/>

  <xsl:template match="/library">
    <report books="{count(book)}" notes="{count(book/note)}">
      <authors>
        <xsl:for-each select="book/author[generate-id() = generate-id(key('by-author', concat(first, ' ', last))[1])]">
          <xsl:sort select="last"/>
          <xsl:sort select="first"/>
          <xsl:variable name="books" select="key('by-author', concat(first, ' ', last))/.."/>
          <author name="{concat(translate(substring(last, 1, 1), 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'), substring(last, 2), ', ', first)}" books="{count($books)}">
            <xsl:for-each select="$books">
              <xsl:sort select="@year" data-type="number"/>
              <xsl:sort select="title"/>
              <title year="{@year}"><xsl:value-of select="title"/></title>
            </xsl:for-each>
          </author>
        </xsl:for-each>
      </authors>
      <shelves>
        <xsl:for-each select="book[generate-id() = generate-id(key('by-shelf', @shelf)[1])]">
          <xsl:sort select="@shelf" data-type="number"/>
          <xsl:variable name="books" select="key('by-shelf', @shelf)"/>
          <shelf number="{@shelf}" total="{format-number(sum($books/price), '0.00')}" mean="{format-number(sum($books/price) div count($books), '0.0')}"/>
        </xsl:for-each>
      </shelves>
      <notes>
        <xsl:apply-templates select="book/note"/>
      </notes>
    </report>
  </xsl:template>

  <xsl:template match="note">
    <note of="{../@id}">
      <xsl:call-template name="reversed">
        <xsl:with-param name="words" select="normalize-space(.)"/>
      </xsl:call-template>
    </note>
  </xsl:template>

  <xsl:template name="reversed">
    <xsl:param name="words"/>
    <xsl:choose>
      <xsl:when test="contains($words, ' ')">
        <xsl:call-template name="reversed">
          <xsl:with-param name="words" select="substring-after($words, ' ')"/>
        </xsl:call-template>
        <xsl:text> </xsl:text>
        <xsl:value-of select="substring-before($words, ' ')"/>
      </xsl:when>
      <xsl:otherwise><xsl:value-of select="$words"/></xsl:otherwise>
    </xsl:choose>
  </xsl:template>
</xsl:stylesheet>
