add_filter( 'render_block_core/comments', function () {
	$thread = sprintf( 'wp-%d', get_the_ID() );
	return '<div id="flatthread" data-site="blog" data-thread="' . esc_attr( $thread ) . '"></div>';
} );
